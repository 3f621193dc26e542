"""The files of the workspace that are not open, checked in the background with progress that can be cancelled."""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from gradguard.findings import Finding
from gradguard.ide.analysis import analysis
from gradguard.lsp.configuration import source_roots
from gradguard.lsp.diagnostics import diagnostics
from gradguard.lsp.documents import document, uri_of
from gradguard.lsp.files import View, read_text
from gradguard.lsp.snapshot import of_document
from gradguard.lsp.worker import Urgency
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.lsp.server import Server

log = logging.getLogger(__name__)

MAX_FILES = 20_000
SKIPPED_FOLDERS = frozenset(
    (".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".tox")
)


class Scanner:
    """Checks whole folders. One scan at a time; a second request waits for the one that runs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._task: asyncio.Task[tuple[int, int]] | None = None
        self._found: dict[str, int] = {}
        """Findings by URI of the files that were scanned."""
        self._cancelled: set[str | int] = set()

    def cancel(self, token: str | int) -> None:
        """The user cancelled; may come before the client's answer to the token was read."""
        if self._task is not None and not self._task.done():
            self._cancelled.add(token)

    async def run(self) -> tuple[int, int]:
        """Scan the workspace: files looked at, findings in them (open ones included)."""
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
        if self._task is None:
            return
        for path in paths:
            self._server.keep(asyncio.ensure_future(self._again(path)))

    async def _again(self, path: str) -> None:
        uri = uri_of(path)
        if uri in self._server.session.documents:
            return
        if not os.path.isfile(path):
            self._found.pop(uri, None)
            self._server.publisher.forget(uri)
            return
        await self._file(path)
        self._server.publisher.again()

    async def _scan(self) -> tuple[int, int]:
        session = self._server.session
        loop = asyncio.get_running_loop()
        paths = await loop.run_in_executor(None, _files, list(session.configuration.folders))
        paths = [path for path in paths if not session.configuration.excluded(path)]
        token = await self._begin(len(paths))
        done = findings = 0
        try:
            for path in paths:
                if token in self._cancelled:
                    break
                findings += await self._file(path)
                done += 1
                if token is not None and (done % 20 == 0 or done == len(paths)):
                    report = self._server.wording.text("scan-report", done=done, all=len(paths))
                    self._server.work_done_progress.report(
                        token,
                        lsp.WorkDoneProgressReport(
                            message=report, percentage=100 * done // len(paths), cancellable=True
                        ),
                    )
        finally:
            if token is not None:
                stopped = done < len(paths)
                message = self._server.wording.text("scan-stopped") if stopped else None
                self._server.work_done_progress.end(token, lsp.WorkDoneProgressEnd(message=message))
                self._server.work_done_progress.tokens.pop(token, None)
                self._cancelled.discard(token)
        log.info("checked %d of %d files: %d findings", done, len(paths), findings)
        return done, findings

    async def _begin(self, count: int) -> str | None:
        if not self._server.session.client.progress:
            return None
        token = f"gradguard-{uuid.uuid4()}"
        try:
            await self._server.work_done_progress.create_async(token)
        except Exception as error:
            log.info("the client shows no progress: %s", error)
            return None
        title = self._server.wording.text("scan-title")
        begin = lsp.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0)
        self._server.work_done_progress.begin(token, begin)
        return token

    async def _file(self, path: str) -> int:
        """Check one file and show what was found; the number of findings."""
        server, session = self._server, self._server.session
        uri = uri_of(path)
        for program in session.programs.at(path):
            return len(session.findings(program))
        force = session.configuration.of(path)
        buffers, roots = session.documents.texts, source_roots(force)

        def work() -> tuple[tuple[Finding, ...], str]:
            text = read_text(path)
            if text is None or "torch" not in text:
                return (), ""
            view = View(session.disk, buffers, roots)
            found = analysis(Source(path, text), force.settings, view, session.analyser)
            if found.outcome.report.crash:
                log.error("internal error while analysing %s\n%s", path, found.outcome.report.crash)
            return found.findings, text

        result: asyncio.Future[tuple[tuple[Finding, ...], str]] = asyncio.get_running_loop().create_future()
        session.worker.submit(
            f"scan:{uri}",
            work,
            lambda value: None if result.done() else result.set_result(value),
            lambda error: None if result.done() else result.set_exception(error),
            Urgency.BACKGROUND,
        )
        found, text = await result
        if uri in session.documents:
            return len(found)
        snapshot = of_document(document(lsp.TextDocumentItem(uri, "python", 0, text)), 0)
        items = diagnostics(
            found, snapshot, session.client, server.wording, server.publisher.elsewhere, session.encoding
        )
        if found or uri in self._found:
            self._found[uri] = len(found)
            server.publisher.put(uri, tuple(items[uri]))
        return len(found)


def _files(folders: list[str]) -> list[str]:
    """Python files below folders, each once, in order."""
    found: dict[str, None] = {}
    for folder in folders:
        for root, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
            for file in sorted(files):
                if file.endswith(".py"):
                    found[os.path.join(root, file)] = None
            if len(found) > MAX_FILES:
                log.warning("more than %d files; the rest is left out", MAX_FILES)
                return list(found)[:MAX_FILES]
    return list(found)
