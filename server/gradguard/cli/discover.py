"""From the paths on the command line to the Python files to check.

A file named outright is always checked. Folders are walked: files ending in `.py`, without what `exclude`,
the usual folders and .gitignore files leave out. Symbolic links to folders are not followed, so that no loop
is walked and no file is checked twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradguard.check.settings import ALWAYS_EXCLUDED, Settings
from gradguard.cli.refused import Refused

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".py",)


class NoSuchPath(Refused):
    """A path on the command line leads nowhere."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file to check. `named`: given outright rather than found in a folder."""

    path: Path
    named: bool = False


SettingsOf = Callable[[Path], Settings]
"""Settings in force in a folder."""


def discover(paths: Sequence[str], settings_of: SettingsOf) -> list[Target]:
    """Files to check, sorted, each once. Raises NoSuchPath."""
    found: dict[Path, Target] = {}
    for text in paths:
        path = Path(os.path.abspath(text))
        if path.suffix == ".ipynb":
            raise NoSuchPath(f"{text}: notebooks are checked in the editor; this reads Python files")
        if path.is_file():
            found[path] = Target(path, named=True)
        elif path.is_dir():
            for file in _walk(path, settings_of):
                found.setdefault(file, Target(file))
        elif path.exists():
            raise NoSuchPath(f"{text}: neither a file nor a folder")
        else:
            raise NoSuchPath(f"{text}: no such file or folder")
    return [found[path] for path in sorted(found)]


def excluded(path: Path, settings: Settings) -> bool:
    """Whether settings leave out this file, or a folder it lies in."""
    spec = _spec((*ALWAYS_EXCLUDED, *settings.exclude))
    return bool(spec.match_file(_relative(path, Path(settings.root or path.anchor))))


def _walk(top: Path, settings_of: SettingsOf) -> Iterator[Path]:
    gitignores = _Gitignores(top)
    stack = [top]
    while stack:
        folder = stack.pop()
        settings = settings_of(folder)
        spec = _spec((*ALWAYS_EXCLUDED, *settings.exclude))
        base = _relative(folder, _base(top, settings, spec))
        prefix = "" if base == "." else base + "/"
        ignored = gitignores.of(folder) if settings.respect_gitignore else None
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not (entry.name.endswith(SUFFIXES) and entry.is_file()):
                continue
            name = prefix + entry.name
            if spec.match_file(name + "/" if is_folder else name):
                continue
            path = Path(entry.path)
            if ignored is not None and ignored(path, is_folder):
                continue
            if is_folder:
                stack.append(path)
            else:
                yield path


def _base(top: Path, settings: Settings, spec: GitIgnoreSpec) -> Path:
    """What patterns are relative to. A folder that was asked for is not left out for where it lies itself."""
    root = Path(settings.root) if settings.root else top
    if root == top or not top.is_relative_to(root):
        return root
    return top if spec.match_file(_relative(top, root) + "/") else root


class _Gitignores:
    """.gitignore files from the root of the repository down to a folder, each read once."""

    def __init__(self, top: Path) -> None:
        self._specs: dict[Path, GitIgnoreSpec | None] = {}
        inside = next((parent for parent in (top, *top.parents) if (parent / ".git").exists()), None)
        self._root = inside or top
        # A folder that is itself ignored was asked for by name, so rules above it are not for it.
        self._from = self._root if not self._ignores(top) else top

    def of(self, folder: Path) -> Callable[[Path, bool], bool] | None:
        """A test for the files of a folder, None where no .gitignore has a say."""
        chain = self._chain(folder)
        if not chain:
            return None
        return lambda path, is_folder: _verdict(chain, path, is_folder)

    def _ignores(self, top: Path) -> bool:
        if top == self._root:
            return False
        self._from = self._root
        between = [parent for parent in (top, *top.parents) if parent.is_relative_to(self._root)]
        return any(
            _verdict(self._chain(path.parent), path, True) for path in reversed(between) if path != self._root
        )

    def _chain(self, folder: Path) -> list[tuple[Path, GitIgnoreSpec]]:
        chain = []
        for parent in (folder, *folder.parents):
            if not parent.is_relative_to(self._from):
                break
            spec = self._spec_of(parent)
            if spec is not None:
                chain.append((parent, spec))
        return chain

    def _spec_of(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            try:
                text = (folder / ".gitignore").read_text("utf-8", errors="replace")
                self._specs[folder] = _spec(tuple(text.splitlines()))
            except OSError:
                self._specs[folder] = None
        return self._specs[folder]


def _verdict(chain: list[tuple[Path, GitIgnoreSpec]], path: Path, is_folder: bool) -> bool:
    """The innermost .gitignore that says something about a path decides."""
    for folder, spec in chain:
        result = spec.check_file(_relative(path, folder) + ("/" if is_folder else ""))
        if result.include is not None:
            return bool(result.include)
    return False


_SPECS: dict[tuple[str, ...], GitIgnoreSpec] = {}


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    if patterns not in _SPECS:
        from pathspec import GitIgnoreSpec

        _SPECS[patterns] = GitIgnoreSpec.from_lines(patterns)
    return _SPECS[patterns]


def _relative(path: Path, root: Path) -> str:
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.as_posix().lstrip("/")
