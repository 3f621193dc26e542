"""The Python files below the workspace folders, and what there could not be read. For the scanner's thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from gradguard.check.parsing import Problem
from gradguard.disk.links import Bounds
from gradguard.disk.reading import Unreadable, unreadable
from gradguard.lsp.disk_calls import DiskCalls
from gradguard.lsp.loading import InForce, Loader

MAX_FILES = 20_000
SUFFIX = ".py"


@dataclass(slots=True)
class Walk:
    """What was found. `unread`: why something was not read, by path."""

    files: dict[str, InForce] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    problems: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    """What is wrong in the settings of the files."""
    more: bool = False
    """Whether there are more files than are looked at."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    folder: bool
    strays: bool
    """A link out of the workspace."""


def walk(folders: Sequence[str], loader: Loader, disk: DiskCalls) -> Walk:
    """Look through folders, each file once. Links to folders are not followed: what they lead to is found there."""
    found = Walk()
    stack = list(reversed(folders))
    seen = set(stack)
    while stack:
        folder = stack.pop()
        try:
            entries = disk.call(folder, partial(_entries, folder, folders, disk))
        except Unreadable as error:
            found.unread[folder] = str(error)
            continue
        below = []
        for entry in entries:
            force = loader.of(entry.path, folder=entry.folder)
            if force.excluded:
                continue
            if entry.strays:
                found.unread[entry.path] = "a link that leads out of the workspace"
            elif not entry.folder:
                found.files[entry.path] = force
                found.problems.update(force.problems)
            elif entry.path not in seen:
                seen.add(entry.path)
                below.append(entry.path)
        stack.extend(reversed(below))
        if len(found.files) > MAX_FILES:
            found.files = dict(list(found.files.items())[:MAX_FILES])
            found.more = True
            break
    return found


def _entries(folder: str, within: Sequence[str], disk: DiskCalls) -> list[_Entry]:
    """Folders and Python files in a folder, in the order of their names. Raises Unreadable."""
    disk.touch(folder)
    try:
        with os.scandir(folder) as scan:
            return sorted(_wanted(scan, Bounds(within)), key=lambda entry: entry.path)
    except OSError as error:
        raise unreadable(error) from None


def _wanted(scan: Iterator[os.DirEntry[str]], bounds: Bounds) -> Iterator[_Entry]:
    for entry in scan:
        if not entry.is_symlink():
            if entry.is_dir() or entry.name.endswith(SUFFIX):
                yield _Entry(entry.path, entry.is_dir(), strays=False)
        elif os.path.isdir(entry.path):
            if not bounds.holds_folder(entry.path):
                yield _Entry(entry.path, folder=True, strays=True)
        elif entry.name.endswith(SUFFIX):
            yield _Entry(entry.path, False, os.path.isfile(entry.path) and not bounds.holds(entry.path))
