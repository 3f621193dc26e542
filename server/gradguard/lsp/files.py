"""Other files as an analysis sees them: open buffers first, the disk below. Used on the worker's thread."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from gradguard.check.workspace import KEPT, LONGEST, TOO_LONG, ReadingWorkspace
from gradguard.disk.links import Bounds
from gradguard.disk.reading import Missing, Unreadable, read_file, unreadable
from gradguard.lsp.disk_calls import MOST, DiskCalls, Hangs
from gradguard.lsp.loading import InForce, bounds
from gradguard.source.text import Source

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    stamp: tuple[int, int]
    source: Source | None


class Disk:
    """Parsed files of the disk and of buffers, kept while they do not change."""

    def __init__(self, calls: DiskCalls) -> None:
        self.calls = calls
        self._files: OrderedDict[str, _Read] = OrderedDict()
        self._buffers: dict[str, Source] = {}
        self._size = 0
        self._unread: dict[str, str] = {}
        """Why files are not read that imports lead to."""

    def buffer(self, path: str, text: str) -> Source | None:
        """The parsed text of an open buffer; None for one that is too long."""
        if len(text) > LONGEST:
            self.unread(path, TOO_LONG)
            return None
        known = self._buffers.get(path)
        if known is None or known.typed != text:
            known = self._buffers[path] = Source.edited(path, text, known)
        return known

    def forget_buffer(self, path: str) -> None:
        """A buffer is no longer open."""
        self._buffers.pop(path, None)

    def source(self, path: str) -> Source | None:
        """A file of the disk; None when it cannot be read as text."""
        known = self._files.get(path)
        try:
            read = self.calls.call(path, lambda: self._look(path, known))
        except Unreadable:
            self._drop(path)
            return None
        if known is not None and read.stamp == known.stamp:
            self._files.move_to_end(path)
            return known.source
        self._drop(path)
        self._files[path] = read
        self._size += len(read.source.text) if read.source else 0
        while self._size > KEPT and len(self._files) > 1:
            self._drop(next(iter(self._files)))
        return read.source

    def _look(self, path: str, known: _Read | None) -> _Read:
        """The file as it is, without its text where it is known. Raises Unreadable for one that is not there."""
        self.calls.touch(path)
        try:
            stat = os.stat(path)
        except OSError as error:
            raise unreadable(error) from None
        except ValueError as error:  # a name with a null character
            raise Missing(str(error)) from None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if known is not None and stamp == known.stamp:
            return known
        try:
            text = read_file(path).text
            if len(text) <= LONGEST:
                return _Read(stamp, Source(path, text))
            self.unread(path, TOO_LONG)
        except Unreadable as error:
            self.unread(path, str(error))
        return _Read(stamp, None)

    def unread(self, path: str, why: str) -> None:
        """An import leads to something that cannot be read: told in the log until it is something else."""
        if self._unread.get(path) != why:
            self._unread[path] = why
            log.warning("not read: %s: %s (imported)", path, why)

    def _drop(self, path: str) -> None:
        known = self._files.pop(path, None)
        if known is not None and known.source is not None:
            self._size -= len(known.source.text)


class View:
    """The workspace for one analysis (`check.workspace.Workspace`); notes which files it looked at.

    buffers: texts of open documents by path, of which each is looked up once: typing goes on meanwhile.
    force: says where imports are looked up, and where a file must lie that is not open.
    """

    def __init__(self, disk: Disk, buffers: Mapping[str, str], force: InForce) -> None:
        self._disk = disk
        self._buffers = buffers
        self._texts: dict[str, str | None] = {}
        self._settings = force.settings
        self._bounds: Bounds | None = None
        self._finder = ReadingWorkspace(self._exists, lambda path: None, force.roots, absent=self._absent)
        self.seen: dict[str, str | None] = {}

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """Path of the file that an import leads to."""
        for _ in range(MOST):
            try:
                return self._disk.calls.call(
                    from_path, lambda: self._finder.resolve(module, level, from_path)
                )
            except Hangs:  # known by now, and passed over
                continue
        return None

    def source(self, path: str) -> Source | None:
        """The file at a path."""
        text = self._buffer(path)
        if text is not None:
            self.seen[path] = text
            return self._disk.buffer(path, text)
        source = self._disk.source(path)
        self.seen[path] = source.typed if source else None
        return source

    def _exists(self, path: str) -> bool:
        if self._buffer(path) is not None:
            return True
        try:
            self._disk.calls.touch(path)
        except Hangs:
            return False
        return os.path.isfile(path) and self._inside(path)

    def _absent(self, path: str) -> None:
        """Something may stand where an import leads, and still be no file that is read."""
        try:
            self._disk.calls.touch(path)
            if not os.path.lexists(path) or os.path.isdir(path):
                return
            if os.path.isfile(path) and not self._inside(path):
                self._disk.unread(path, "it lies out of the project")
            else:
                read_file(path)
        except Hangs:
            pass
        except Missing:
            self._disk.unread(path, "a link that leads nowhere")
        except Unreadable as error:
            self._disk.unread(path, str(error))

    def _inside(self, path: str) -> bool:
        if self._bounds is None:
            self._bounds = bounds(self._settings)
        return self._bounds.holds(path)

    def _buffer(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._buffers.get(path)
        return self._texts[path]
