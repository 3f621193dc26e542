"""The files of the workspace that are not open, checked in the background with progress that can be cancelled."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradguard.check.workspace import LONGEST, TOO_LONG
from gradguard.disk.reading import Missing, Unreadable
from gradguard.findings import Finding
from gradguard.ide.analysis import analysis
from gradguard.lsp.diagnostics import diagnostics
from gradguard.lsp.documents import document, uri_of
from gradguard.lsp.loading import InForce
from gradguard.lsp.publish import Publisher
from gradguard.lsp.session import Session
from gradguard.lsp.snapshot import of_document
from gradguard.lsp.tasks import Tasks
from gradguard.lsp.walk import MAX_FILES, Walk, walk
from gradguard.lsp.worker import Urgency, Worker
from gradguard.source.text import Source

log = logging.getLogger(__name__)
T = TypeVar("T")

GATE = "torch"
NAMED = 100
"""Files that were not read which are named in the log; the others are counted."""


@dataclass(slots=True)
class Summary:
    """What a scan came to: files looked at, findings in them (open ones included), files and folders not read."""

    files: int = 0
    findings: int = 0
    unread: int = 0


class Scanner:
    """Checks whole folders. One scan at a time; a second request waits for the one that runs."""

    def __init__(self, server: LanguageServer, session: Session, publisher: Publisher, tasks: Tasks) -> None:
        self._server, self._session, self._publisher, self._tasks = server, session, publisher, tasks
        self._task: asyncio.Task[Summary] | None = None
        self._thread: Worker | None = None
        self._found: dict[str, int] = {}
        """Findings by URI of the files that were scanned."""
        self._cancelled: set[str | int] = set()

    def cancel(self, token: str | int) -> None:
        """The user cancelled; may come before the client's answer to the token was read."""
        if self._task is not None and not self._task.done():
            self._cancelled.add(token)

    async def run(self) -> Summary:
        """Scan the workspace."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._scan())
        return await asyncio.shield(self._task)

    async def finished(self) -> None:
        """Wait for the scan, starting the first one."""
        if self._task is None:
            await self.run()
        elif not self._task.done():
            await asyncio.shield(self._task)

    def changed(self, paths: set[str]) -> None:
        """Files changed on disk: scan those again that were scanned."""
        if self._task is not None and paths:
            self._tasks.keep(asyncio.ensure_future(self._again(sorted(paths))))

    def stop(self) -> None:
        """Begin nothing further."""
        if self._thread is not None:
            self._thread.stop()

    async def _again(self, paths: list[str]) -> None:
        loader = self._session.configuration.loader
        for path in paths:
            force = await self._apart(partial(loader.of, path))
            if force.excluded:
                continue
            try:
                await self._file(path, force)
            except Missing:
                self._forget(path)
            except Unreadable as error:
                log.warning("not read: %s: %s", path, error)
                self._forget(path)
        self._publisher.again()

    async def _scan(self) -> Summary:
        session = self._session
        folders, loader = tuple(session.configuration.folders), session.configuration.loader
        found = await self._apart(lambda: walk(folders, loader, session.lookout.disk))
        session.configuration.heed(loader, found.problems)
        token = await self._begin(len(found.files))
        done = findings = 0
        try:
            for path, force in found.files.items():
                if token in self._cancelled:
                    break
                try:
                    findings += await self._file(path, force)
                except Unreadable as error:
                    found.unread[path] = str(error)
                    self._forget(path)
                done += 1
                if token is not None and (done % 20 == 0 or done == len(found.files)):
                    self._report(token, done, len(found.files))
        finally:
            if token is not None:
                self._end(token, done < len(found.files), found)
        self._log(found)
        log.info(
            "checked %d of %d files: %d findings, %d not read",
            done, len(found.files), findings, len(found.unread),
        )  # fmt: skip
        return Summary(done, findings, len(found.unread))

    async def _begin(self, count: int) -> str | None:
        if not self._session.client.progress:
            return None
        token = f"gradguard-{uuid.uuid4()}"
        try:
            await self._server.work_done_progress.create_async(token)
        except Exception as error:
            log.info("the client shows no progress: %s", error)
            return None
        title = self._session.wording.text("scan-title")
        begin = lsp.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0)
        self._server.work_done_progress.begin(token, begin)
        return token

    def _report(self, token: str, done: int, count: int) -> None:
        report = self._session.wording.text("scan-report", done=done, all=count)
        self._server.work_done_progress.report(
            token,
            lsp.WorkDoneProgressReport(message=report, percentage=100 * done // count, cancellable=True),
        )

    def _end(self, token: str, stopped: bool, found: Walk) -> None:
        wording = self._session.wording
        parts = [wording.text("scan-stopped")] if stopped else []
        parts += [wording.text("scan-unread", count=len(found.unread))] if found.unread else []
        parts += [wording.text("scan-more", count=f"{MAX_FILES:,}")] if found.more else []
        end = lsp.WorkDoneProgressEnd(message=", ".join(parts) or None)
        self._server.work_done_progress.end(token, end)
        self._server.work_done_progress.tokens.pop(token, None)
        self._cancelled.discard(token)

    def _log(self, found: Walk) -> None:
        if found.more:
            log.warning("more than %d files; the rest is left out", MAX_FILES)
        for path, why in list(found.unread.items())[:NAMED]:
            log.warning("not read: %s: %s", path, why)
        if len(found.unread) > NAMED:
            log.warning("not read: %d more", len(found.unread) - NAMED)

    async def _file(self, path: str, force: InForce) -> int:
        """Check one file and show what was found; the number of findings. Raises Unreadable."""
        session = self._session
        for program in session.programs.at(path):
            return len(session.findings(program))
        text = await self._apart(lambda: session.lookout.disk.text(path))
        found: tuple[Finding, ...] = ()
        if GATE in text and force.settings.enable:
            if len(text) > LONGEST:
                raise Unreadable(TOO_LONG)
            found = await self._analysed(path, text, force)
        if not session.programs.at(path):
            self._show(path, text, found)
        return len(found)

    async def _analysed(self, path: str, text: str, force: InForce) -> tuple[Finding, ...]:
        session = self._session

        def work() -> tuple[Finding, ...]:
            found = analysis(Source(path, text), force.settings, session.view(force), session.analyser)
            if found.outcome.report.crash:
                log.error("internal error while analysing %s\n%s", path, found.outcome.report.crash)
            return found.findings

        return await _result(session.worker, work)

    def _show(self, path: str, text: str, found: tuple[Finding, ...]) -> None:
        uri = uri_of(path)
        if not found:
            self._forget(path)
            return
        snapshot = of_document(document(lsp.TextDocumentItem(uri, "python", 0, text)), 0)
        items = diagnostics(
            found,
            snapshot,
            self._session.client,
            self._session.wording,
            self._publisher.elsewhere,
            self._session.encoding,
        )
        self._found[uri] = len(found)
        self._publisher.put(uri, tuple(items[uri]))

    def _forget(self, path: str) -> None:
        uri = uri_of(path)
        if self._found.pop(uri, None) is not None:
            self._publisher.forget(uri)

    async def _apart(self, work: Callable[[], T]) -> T:
        """What work on the scanner's own thread gives: it may wait for a disk, and an edit never waits for it."""
        if self._thread is None:
            self._thread = Worker(asyncio.get_running_loop(), "gradguard-scanner", collects=False)
        return await _result(self._thread, work)


async def _result(worker: Worker, work: Callable[[], T]) -> T:
    result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    worker.submit(
        f"scan:{id(result)}",
        work,
        lambda value: None if result.done() else result.set_result(value),
        lambda error: None if result.done() else result.set_exception(error),
        Urgency.BACKGROUND,
    )
    return await result
