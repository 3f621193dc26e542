"""Everything that a folder holds, so that two moments can be compared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def everything(top: Path, *but: Path) -> dict[str, tuple[object, ...]]:
    """Kind, mode, owner, names, time of change and content of a path and all below it, those named and theirs aside.

    A link counts as itself. A folder that something named lies in is compared without its time, which changes with it.
    """
    parents = {path.parent for path in but}
    return {str(path): _one(path, timed=path not in parents) for path in _paths(top, {*but})}


def _paths(top: Path, but: set[Path]) -> Iterator[Path]:
    yield top
    for where, folders, files in os.walk(top):
        folders[:] = [name for name in folders if Path(where, name) not in but]
        yield from (path for name in (*folders, *files) if (path := Path(where, name)) not in but)


def _one(path: Path, *, timed: bool) -> tuple[object, ...]:
    look = path.lstat()
    content: object = ""
    if stat.S_ISREG(look.st_mode):
        content = path.read_bytes()
    elif stat.S_ISLNK(look.st_mode):
        content = os.readlink(path)
    names = 0 if stat.S_ISDIR(look.st_mode) else look.st_nlink
    return look.st_mode, look.st_uid, names, look.st_mtime_ns if timed else 0, content
