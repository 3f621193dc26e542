"""How far links lead: a repository's own links are followed inside of what was asked for, and no farther."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PROJECT = (".git", "pyproject.toml")
"""What a folder has in it that is a project."""


class Bounds:
    """Folders in which a file must really lie. Without any folder, everything is inside.

    A path that passes through no link below the folder is inside whatever the folder's own path passes through:
    what a user names may lie behind a link, what a repository names may not lead out.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._real = tuple(dict.fromkeys(_with_end(os.path.realpath(each)) for each in folders))
        self._folders: dict[str, bool] = {}

    def holds(self, path: str) -> bool:
        """Whether a path (absolute) lies inside once its links are followed."""
        if not self._real:
            return True
        folder, _name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = self._inside(os.path.realpath(folder))
        if not os.path.islink(path):
            return self._folders[folder]
        return self._inside(os.path.realpath(path))

    def holds_folder(self, path: str) -> bool:
        """Whether a folder (absolute) lies inside, or is one of those, once its links are followed."""
        return not self._real or self._inside(os.path.realpath(path))

    def _inside(self, real: str) -> bool:
        return _with_end(real).startswith(self._real)


def is_project(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is the root of a project."""
    return any(os.path.exists(os.path.join(folder, each)) for each in PROJECT)


def until_project(path: str | os.PathLike[str]) -> tuple[str, tuple[str, ...]]:
    """The part of a path that leads to a project, and the names from there on; all of it and none without one.

    Links in the first part are the user's, those in the second may be a repository's. The working folder counts as
    a project, since a repository may have been unpacked there; not so the root of all, where `/dev/stdout` lies.
    """
    full = Path(os.path.abspath(path))
    for folder in reversed(full.parents):
        if is_project(folder) or (folder.name and _is_working_folder(folder)):
            return str(folder), full.relative_to(folder).parts
    return str(full), ()


def _is_working_folder(folder: Path) -> bool:
    try:
        return folder.samefile(os.curdir)
    except OSError:
        return False


def _with_end(path: str) -> str:
    return path.rstrip(os.sep) + os.sep
