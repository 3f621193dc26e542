"""Where an import leads inside the workspace, over whatever can read files.

The command line reads the disk, the editor lays open buffers over it, tests use a dictionary: all give the
same two functions to `ReadingWorkspace`, so that a module is found at the same place everywhere. Only the
project's own files are looked up; installed packages are not read.
"""

from __future__ import annotations

import os.path
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gradguard.check.settings import Settings
from gradguard.source.text import Source


class Workspace(Protocol):
    """Other files, for findings that need two of them."""

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """Path of the file that `import module` (or `from ..module import`, level 2) in `from_path` runs."""
        ...

    def source(self, path: str) -> Source | None:
        """The file at a path that `resolve` gave; None when it cannot be read."""
        ...


class _Empty:
    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        return None

    def source(self, path: str) -> Source | None:
        return None


EMPTY: Workspace = _Empty()


class Overlaid:
    """A workspace in which one file has another text."""

    def __init__(self, inner: Workspace, changed: Source) -> None:
        self.resolve = inner.resolve
        self._inner, self._changed = inner, changed

    def source(self, path: str) -> Source | None:
        """See `Workspace.source`."""
        return self._changed if path == self._changed.path else self._inner.source(path)


LONGEST = 1_000_000
"""Characters of a text that is parsed, which is more than the longest that people write. Python parses a statement in
one go, during which nothing else runs, and a tree may take hundreds of times what its text does."""
TOO_LONG = f"longer than {LONGEST:,} characters"

KEPT = 4_000_000
"""Characters of source text whose trees are kept; a tree takes some 30 bytes for each."""


class ReadingWorkspace:
    """A workspace over two functions; remembers what it found for as long as it lives.

    exists: whether there is a file at a path. read: its text, None when it cannot be had.
    roots: folders in which absolute imports are looked up, the nearest first.
    absent: told each path to which an import would lead if a file existed there.
    """

    def __init__(
        self,
        exists: Callable[[str], bool],
        read: Callable[[str], str | None],
        roots: Sequence[str] = (),
        *,
        absent: Callable[[str], object] = lambda path: None,
    ) -> None:
        self._exists = exists
        self._read = read
        self._absent = absent
        self._roots = tuple(os.path.normpath(root) for root in roots)
        self._found: dict[tuple[str, int, str], str | None] = {}
        self._searched: dict[str, tuple[str, ...]] = {}
        self._sources: OrderedDict[str, Source | None] = OrderedDict()
        self._size = 0

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """See `Workspace.resolve`."""
        folder = os.path.dirname(from_path)
        key = (module, level, folder)
        if key not in self._found:
            self._found[key] = self._look(module, level, folder)
        return self._found[key]

    def source(self, path: str) -> Source | None:
        """See `Workspace.source`. A file without torch in its text is given as well: it may pass tensors on."""
        if path in self._sources:
            self._sources.move_to_end(path)
            return self._sources[path]
        text = self._read(path)
        source = None if text is None else Source(path, text)
        self._sources[path] = source
        self._size += len(text or "")
        while self._size > KEPT and len(self._sources) > 1:
            _, dropped = self._sources.popitem(last=False)
            self._size -= len(dropped.text) if dropped else 0
        return source

    def _look(self, module: str, level: int, folder: str) -> str | None:
        parts = [part for part in module.split(".") if part]
        if level:
            for _ in range(level - 1):
                above = os.path.dirname(folder)
                if above == folder:
                    return None
                folder = above
            return self._file(folder, parts)
        if not parts:
            return None
        for root in self._search(folder):
            found = self._file(root, parts)
            if found is not None:
                return found
        return None

    def _search(self, folder: str) -> Iterable[str]:
        """A script's own folder, the folder that holds its outermost package, then the roots."""
        if folder not in self._searched:
            outer = folder
            while self._exists(os.path.join(outer, "__init__.py")) and outer != os.path.dirname(outer):
                outer = os.path.dirname(outer)
            self._searched[folder] = tuple(dict.fromkeys((outer, folder, *self._roots)))
        return self._searched[folder]

    def _file(self, root: str, parts: list[str]) -> str | None:
        base = os.path.join(root, *parts)
        for path in (os.path.join(base, "__init__.py"), *([base + ".py"] if parts else [])):
            if self._exists(path):
                return path
            self._absent(path)
        return None


def source_roots(settings: Settings, base: str, inside: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Folders in which absolute imports are looked up, and those of `src`, as written, that lead out of the project.

    base: the folder that `src` is relative to. inside: whether a folder lies where imported files may lie.
    """
    folders = {text: os.path.normpath(os.path.join(base, text)) for text in settings.src}
    kept = [folder for folder in folders.values() if inside(folder)]
    return [*settings.trusted, *kept], [text for text, folder in folders.items() if folder not in kept]
