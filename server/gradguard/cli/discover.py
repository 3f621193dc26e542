"""From the paths on the command line to the Python files and notebooks to check.

A file named outright is always checked. Folders are walked: files ending in `.py` and `.ipynb`, without what `exclude`,
the usual folders and .gitignore files leave out. Symbolic links to folders are not followed, so that no loop
is walked and no file is checked twice; those to files are, as long as they stay in what was asked for or in
the project. What cannot be read is told, and costs nothing but itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradguard.check.patterns import Patterns, compiled
from gradguard.check.selection import relative
from gradguard.check.settings import ALWAYS_EXCLUDED, Settings
from gradguard.cli.ignoring import Ignoring, above
from gradguard.cli.refused import Refused
from gradguard.cli.result import Trouble, Unread
from gradguard.disk.links import Bounds
from gradguard.disk.reading import unreadable

SUFFIXES = (".py", ".ipynb")


class NoSuchPath(Refused):
    """A path on the command line leads nowhere."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file to check. `named`: given outright rather than found in a folder."""

    path: Path
    named: bool = False


SettingsOf = Callable[[Path], Settings]
"""Settings in force in a folder."""
Tell = Callable[[Trouble], object]
"""Takes what could not be read."""


def discover(
    paths: Sequence[str], settings_of: SettingsOf, tell: Tell = lambda trouble: None
) -> list[Target]:
    """Files to check, sorted, each once. Raises NoSuchPath."""
    found: dict[str, Target] = {}
    folders = [path for path in map(os.path.abspath, paths) if os.path.isdir(path)]
    for text in paths:
        path = os.path.abspath(text)
        if path in folders:
            for file in _Walk(path, folders, settings_of, tell).files():
                found.setdefault(file, Target(Path(file)))
        elif os.path.lexists(path):
            found[path] = Target(Path(path), named=True)
        else:
            raise NoSuchPath(f"{text}: no such file or folder")
    return sorted(found.values(), key=lambda target: target.path.parts)


def walked(folder: str, settings_of: SettingsOf) -> Iterator[str]:
    """The files below a folder (absolute), as `discover` would find them; what cannot be read is passed over."""
    return _Walk(folder, [folder], settings_of, lambda trouble: None).files()


def excluded(path: Path, settings: Settings) -> bool:
    """Whether settings leave out this file, or a folder it lies in."""
    return bool(_patterns(settings).verdict(relative(str(path), settings.root)))


def _patterns(settings: Settings) -> Patterns:
    return compiled((*ALWAYS_EXCLUDED, *settings.exclude))


@dataclass(slots=True)
class _Folder:
    """A folder on the way down, with those above it."""

    path: str
    above: _Folder | None
    ignoring: Ignoring | None
    identity: tuple[int, int] | None = None

    def again(self) -> _Folder | None:
        """The folder above that this one is, where a mount leads back to it."""
        each = self.above
        while each is not None and (self.identity is None or each.identity != self.identity):
            each = each.above
        return each


class _Walk:
    """The files below one folder that was asked for."""

    def __init__(self, top: str, named: Sequence[str], settings_of: SettingsOf, tell: Tell) -> None:
        self._top = top
        self._settings_of = settings_of
        self._tell = tell
        within = settings_of(Path(top)).within
        self._bounds = Bounds((*named, *within) if within else ())
        self._roots: dict[tuple[str, tuple[str, ...]], str] = {}

    def files(self) -> Iterator[str]:
        respected = self._settings_of(Path(self._top)).respect_gitignore
        stack = [_Folder(self._top, None, above(self._top, self._ignoring) if respected else None)]
        while stack:
            folder = stack.pop()
            entries = self._entries(folder)
            if not entries:
                continue
            settings = self._settings_of(Path(folder.path))
            patterns = _patterns(settings)
            prefix = self._prefix(folder.path, settings, patterns)
            ignoring = folder.ignoring
            if settings.respect_gitignore:
                ignoring = self._ignoring(folder.path, ignoring)
            for entry, is_folder in entries:
                if patterns.verdict(prefix + entry.name + "/" * is_folder):
                    continue
                if settings.respect_gitignore and ignoring and ignoring.leaves_out(entry.path, is_folder):
                    continue
                if not entry.is_symlink():
                    if not is_folder:
                        yield entry.path
                    else:
                        stack.append(_Folder(entry.path, folder, ignoring))
                elif is_folder:
                    if not self._bounds.holds_folder(entry.path):
                        self._unread(entry.path, "a link that leads out of the project", Unread.FOLDER)
                elif self._bounds.holds(entry.path) or not os.path.isfile(entry.path):
                    yield entry.path
                else:
                    self._unread(entry.path, "a link that leads out of the project", Unread.FILE)

    def _entries(self, folder: _Folder) -> list[tuple[os.DirEntry[str], bool]]:
        """What may matter in a folder, in the order of the names; whether each is a folder or a link to one."""
        try:
            look = os.stat(folder.path)
            folder.identity = (look.st_dev, look.st_ino) if look.st_ino else None
            again = folder.again()
            if again is not None:
                self._unread(folder.path, f"the same folder as {again.path}", Unread.FOLDER)
                return []
            with os.scandir(folder.path) as scan:
                entries = [(entry, _is_folder(entry)) for entry in scan]
        except OSError as error:
            self._unread(folder.path, str(unreadable(error)), Unread.FOLDER, named=folder.path == self._top)
            return []
        wanted = [each for each in entries if each[1] or each[0].name.endswith(SUFFIXES)]
        return sorted(wanted, key=lambda each: each[0].name)

    def _ignoring(self, folder: str, outer: Ignoring | None) -> Ignoring | None:
        return Ignoring.of(
            folder, outer, self._bounds, lambda path, why: self._unread(path, why, Unread.FILE)
        )

    def _prefix(self, folder: str, settings: Settings, patterns: Patterns) -> str:
        """What stands before the names of a folder where patterns name them."""
        key = settings.root, settings.exclude
        if key not in self._roots:
            root = settings.root or self._top
            inside = root != self._top and Path(self._top).is_relative_to(root)
            # A folder that was asked for is not left out for where it lies itself.
            itself = inside and patterns.verdict(relative(self._top, root) + "/")
            self._roots[key] = self._top if itself else root
        base = relative(folder, self._roots[key])
        return "" if base == "." else base + "/"

    def _unread(self, path: str, why: str, what: Unread, *, named: bool = False) -> None:
        self._tell(Trouble(path, why, unread=what, named=named))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle, as one example
        return False
