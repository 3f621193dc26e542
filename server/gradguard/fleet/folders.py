"""The programs below a folder: those that `gradguard check` would find, without any that a link leads to."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from gradguard.check import pyproject
from gradguard.check.settings import Settings, resolve
from gradguard.cli import discover
from gradguard.disk.reading import Unreadable, read_bytes
from gradguard.fleet import names
from gradguard.fleet.model import Tree, Unopened
from gradguard.fleet.names import Gathering


def read(top: str) -> Tree:
    """What lies below a folder (absolute). Raises Unopened."""
    if not os.path.isdir(top):
        raise Unopened("no such folder")
    gathering = Gathering()
    settings = _Settings(top)
    targets = discover.discover(
        [top],
        settings.of,
        lambda trouble: gathering.missed.add(_below(trouble.path, top), trouble.message),
    )
    folders: dict[str, None] = {top: None}
    for target in targets:
        name = gathering.member(_below(str(target.path), top))
        if name is None:
            continue
        folders.update(dict.fromkeys(map(str, _up_to(target.path.parent, top))))
        _put(gathering, name, str(target.path))
    # What marks the root of a package is no program; it is looked for where programs lie.
    for folder in folders:
        for marker in names.ROOTS:
            path = os.path.join(folder, marker)
            marked = _below(path, top)
            if os.path.lexists(path) and marked not in gathering.tree.files:
                _put(gathering, marked, path)
    return gathering.tree


def _put(gathering: Gathering, name: str, path: str) -> None:
    if os.path.islink(path):
        gathering.missed.add(name, names.LINK)
        return
    try:
        gathering.put(name, read_bytes(path, names.most_of(name)))
    except Unreadable as error:
        gathering.missed.add(name, str(error))


def _up_to(folder: Path, top: str) -> list[Path]:
    """A folder and those above it, up to the top."""
    return [each for each in (folder, *folder.parents) if each == Path(top) or each.is_relative_to(top)]


def _below(path: str, top: str) -> str:
    return os.path.relpath(path, top).replace(os.sep, "/") if path != top else ""


class _Settings:
    """What the walk asks of settings: whether .gitignore files count. No file out of the folder has a say.

    Files that `exclude` names are read all the same, since others may import them; they are not checked.
    """

    def __init__(self, top: str) -> None:
        self._top = top
        self._known: dict[Path, Settings] = {}

    def of(self, folder: Path) -> Settings:
        if folder not in self._known:
            project = pyproject.find(PurePath(folder), self._read)
            self._known[folder] = resolve(project.parsed.layer).with_changes(exclude=(), root=self._top)
        return self._known[folder]

    def _read(self, path: str) -> str | None:
        inside = path.startswith(self._top.rstrip(os.sep) + os.sep)
        if not inside or os.path.islink(path):
            return None
        try:
            return read_bytes(path, names.most_of(path)).decode("utf-8-sig")
        except (Unreadable, UnicodeDecodeError):
            return None
