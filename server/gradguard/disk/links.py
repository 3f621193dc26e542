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


class Projects:
    """Where files lie and what belongs to them: so far, and no farther, their imports are followed."""

    def __init__(self, *, working_folder: bool = True) -> None:
        """working_folder: whether the one of this process means anything to the user."""
        self._here = os.path.realpath(os.getcwd()) if working_folder else ""
        self._around_here = _package(self._here) if working_folder else ""
        self._real: dict[str, str] = {}
        self._repositories: dict[str, str] = {}

    def within(self, folder: str, root: str) -> tuple[str, ...]:
        """Folders in which what the files of a folder (absolute) import must lie.

        root: the folder of the settings in force, which is the project; empty where there are none. Then it is
        the repository, or the working folder, or the package. A folder that is reached through a link that
        leads out of the project belongs to another as well.
        """
        real = self._resolved(folder)
        if root:
            inside = _with_end(real).startswith(_with_end(os.path.realpath(root)))
            return (root,) if inside else (root, self._around(real))
        around = self._around(real)
        return (around,) if not self._here or self._is_here(real) else (around, self._here)

    def _around(self, real: str) -> str:
        repository = self.repository(real)
        if repository:
            return repository
        return self._around_here if self._is_here(real) else _package(real)

    def _is_here(self, real: str) -> bool:
        return bool(self._here) and _with_end(real).startswith(_with_end(self._here))

    def _resolved(self, folder: str) -> str:
        outer, name = os.path.split(folder)
        if outer in self._real and name and not os.path.islink(folder):
            real = os.path.join(self._real[outer], name)
        else:
            real = os.path.realpath(folder)
        self._real[folder] = real
        return real

    def repository(self, folder: str) -> str:
        """The nearest folder with a `.git`, empty without one."""
        below = []
        while folder not in self._repositories:
            below.append(folder)
            outer = os.path.dirname(folder)
            if os.path.exists(os.path.join(folder, ".git")):
                self._repositories[folder] = folder
            elif outer == folder:
                self._repositories[folder] = ""
            else:
                folder = outer
        found = self._repositories[folder]
        self._repositories.update(dict.fromkeys(below, found))
        return found


def _package(folder: str) -> str:
    """The outermost package that a folder is a part of, the folder itself where it is in none."""
    outer = folder
    while os.path.isfile(os.path.join(outer, "__init__.py")) and outer != os.path.dirname(outer):
        folder, outer = outer, os.path.dirname(outer)
    return folder
