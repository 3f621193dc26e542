"""What lies around the documents: settings, and what runs left. Read by a thread that may wait for a disk.

Everything here runs on the event loop's thread, which never waits, but for the jobs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial

from gradguard.disk.reading import Unreadable
from gradguard.lsp.configuration import Configuration, Wrong
from gradguard.lsp.disk_calls import RECOVERY, DiskCalls
from gradguard.lsp.loading import InForce
from gradguard.lsp.observed import Observed, Runs, read_runs
from gradguard.lsp.worker import Urgency, Worker

log = logging.getLogger(__name__)

ANY = "_.py"
"""Stands for the files of a folder."""


class Lookout:
    """Settings and runs as far as they are known.

    wrong: told what is wrong in settings. hangs, answers: told the paths for which a disk does not answer, and does
    again. changed: called when everything that lies on disks should be looked at anew.
    """

    def __init__(
        self,
        *,
        wrong: Wrong,
        hangs: Callable[[str], None],
        answers: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.disk = DiskCalls(
            hangs=partial(self._tell, hangs), answers=partial(self._tell, self._answers_again)
        )
        self.configuration = Configuration(self.disk, wrong)
        self.observed = Observed()
        self._answers, self._changed = answers, changed
        self._thread: Worker | None = None
        self._timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Begin nothing further."""
        if self._thread is not None:
            self._thread.stop()
        if self._timer is not None:
            self._timer.cancel()

    def start(self) -> None:
        """Have a thread to read with."""
        if self._thread is None:
            self._thread = Worker(asyncio.get_running_loop(), "gradguard-settings", collects=False)

    def load(self, path: str, then: Callable[[], None]) -> None:
        """Have the settings for a path read. Of several who ask before they are, the last is called."""
        self._ask(path, path, then)

    def hurry(self, path: str) -> None:
        """Somebody waits for these settings."""
        self._worker.hurry(path)

    def look(self, folder: str) -> None:
        """Have the settings of a folder read for what is wrong in them, although nobody asks for those of a file in it.

        What is read is not kept: files that are opened later are checked with what stands there then.
        """
        loader, own = self.configuration.loader, self.configuration.new_loader()

        def done(force: InForce) -> None:
            self.configuration.heed(loader, force.problems)

        def failed(error: BaseException) -> None:
            log.error("the settings of %s cannot be read: %r", folder, error)

        work = partial(own.of, os.path.join(folder, ANY))
        self._worker.submit(f"look:{folder}", work, done, failed, Urgency.BACKGROUND)

    async def settings(self, path: str) -> InForce:
        """Settings for a path, read if need be."""
        while (known := self.configuration.known(path)) is None:
            loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._ask(f"asked:{id(loaded)}", path, partial(_wake, loaded))
            await loaded
        return known

    async def text(self, path: str) -> str:
        """Text of a file that is UTF-8 by its nature. Raises Unreadable."""
        read: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def done(text: str) -> None:
            if not read.done():
                read.set_result(text)

        def failed(error: BaseException) -> None:
            if not read.done():
                read.set_exception(error if isinstance(error, Unreadable) else Unreadable(str(error)))

        self._worker.submit(f"text:{id(read)}", partial(self.disk.utf8, path), done, failed)
        return await read

    def runs(self) -> None:
        """Have what runs left in the workspace folders read."""
        folders = tuple(self.configuration.folders)

        def done(runs: Runs) -> None:
            if folders == tuple(self.configuration.folders) and self.observed.take(runs):
                self._changed()

        def failed(error: BaseException) -> None:
            log.error("what runs left cannot be read: %r", error)

        self._worker.submit("runs", lambda: read_runs(folders, self.disk), done, failed, Urgency.BACKGROUND)

    def again(self) -> None:
        """Read everything anew when it is next needed."""
        self._timer = None
        self.configuration.forget()
        self.runs()
        self._changed()

    @property
    def _worker(self) -> Worker:
        assert self._thread is not None, "not started"
        return self._thread

    def _ask(self, key: str, path: str, then: Callable[[], None]) -> None:
        loader = self.configuration.loader

        def done(force: InForce) -> None:
            self.configuration.take(loader, path, force)
            then()

        def failed(error: BaseException) -> None:
            done(loader.without(path, error))

        self._worker.submit(key, partial(loader.of, path), done, failed)

    def _tell(self, callback: Callable[[str], None], path: str) -> None:
        self._worker.tell(callback, path)

    def _answers_again(self, path: str) -> None:
        self._answers(path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RECOVERY + 0.5, self.again)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
