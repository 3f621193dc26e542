"""Other files as an analysis sees them: open buffers first, the disk below. Used on the worker's thread."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradguard.check.workspace import ReadingWorkspace
from gradguard.source.decode import Undecodable, decode
from gradguard.source.text import Source

MAX_BYTES = 4_000_000
KEPT = 4_000_000
"""Characters of source text whose trees are kept."""


@dataclass(frozen=True, slots=True)
class _Read:
    stamp: tuple[int, int]
    source: Source | None


class Disk:
    """Parsed files of the disk and of buffers, kept while they do not change."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _Read] = OrderedDict()
        self._buffers: dict[str, Source] = {}
        self._size = 0

    def buffer(self, path: str, text: str) -> Source:
        """The parsed text of an open buffer."""
        known = self._buffers.get(path)
        if known is None or known.text != text:
            known = self._buffers[path] = Source(path, text, known)
        return known

    def forget_buffer(self, path: str) -> None:
        """A buffer is no longer open."""
        self._buffers.pop(path, None)

    def source(self, path: str) -> Source | None:
        """A file of the disk; None when it cannot be read as text."""
        try:
            stat = os.stat(path)
        except (OSError, ValueError):
            self._drop(path)
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._files.get(path)
        if known is not None and known.stamp == stamp:
            self._files.move_to_end(path)
            return known.source
        self._drop(path)
        text = read_text(path) if stat.st_size <= MAX_BYTES else None
        source = None if text is None else Source(path, text)
        self._files[path] = _Read(stamp, source)
        self._size += len(text or "")
        while self._size > KEPT and len(self._files) > 1:
            self._drop(next(iter(self._files)))
        return source

    def _drop(self, path: str) -> None:
        known = self._files.pop(path, None)
        if known is not None and known.source is not None:
            self._size -= len(known.source.text)


class View:
    """The workspace for one analysis (`check.workspace.Workspace`); notes which files it looked at.

    buffers: texts of open documents by path, of which each is looked up once: typing goes on meanwhile.
    """

    def __init__(self, disk: Disk, buffers: Mapping[str, str], roots: Sequence[str]) -> None:
        self._disk = disk
        self._buffers = buffers
        self._texts: dict[str, str | None] = {}
        self._finder = ReadingWorkspace(self._exists, lambda path: None, roots)
        self.seen: dict[str, str | None] = {}

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """Path of the file that an import leads to."""
        return self._finder.resolve(module, level, from_path)

    def source(self, path: str) -> Source | None:
        """The file at a path."""
        text = self._buffer(path)
        source = self._disk.buffer(path, text) if text is not None else self._disk.source(path)
        self.seen[path] = source.text if source else None
        return source

    def _exists(self, path: str) -> bool:
        return self._buffer(path) is not None or os.path.isfile(path)

    def _buffer(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._buffers.get(path)
        return self._texts[path]


def read_text(path: str) -> str | None:
    """Text of a file; None when it cannot be had."""
    try:
        with open(path, "rb") as file:
            return decode(file.read())
    except (OSError, ValueError, Undecodable):
        return None
