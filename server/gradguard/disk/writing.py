"""Files are replaced at once: a reader sees the old or the new, never a part."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from gradguard.disk.folder import Folder
from gradguard.disk.links import until_project


def replace_file(path: Path, data: bytes, *, project_links: bool = True) -> None:
    """Put bytes in the place of a file.

    Keeps mode and owner, and follows a symbolic link to the file it names; without `project_links` only where the
    link is the user's (see `until_project`). A device or a pipe is written to. Raises OSError, also for a file that
    is not to be written: its folder would let another take its place. Other hard links keep the old bytes, as what
    takes a file's place at once is another file.
    """
    base, names = (str(path), ()) if project_links else until_project(path)
    if not names:
        if _takes_all(base):
            _pour(base, data)
            return
        base, name = os.path.split(os.path.realpath(base))
        if not name:
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
        names = (name,)
    with Folder.open(base) as start, start.below(names[:-1]) as folder:
        known = folder.look(names[-1])
        if known is None:
            folder.write(names[-1], data, durable=True)
            return
        if stat.S_ISREG(known.st_mode) and not (known.st_mode & 0o222 and os.access(path, os.W_OK)):
            raise PermissionError(errno.EACCES, "it is read-only", str(path))
        owner = known.st_uid, known.st_gid
        folder.write(names[-1], data, mode=known.st_mode & 0o7777, owner=owner, durable=True)


def _takes_all(path: str) -> bool:
    """Whether a path is that of something which is written to rather than replaced, as /dev/stdout."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _pour(path: str, data: bytes) -> None:
    try:
        # A pipe that nobody reads from is an error, not a reason to wait.
        handle = os.open(
            path,
            os.O_WRONLY
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_NOCTTY", 0)
            | getattr(os, "O_CLOEXEC", 0)
            | getattr(os, "O_BINARY", 0),
        )
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads from it", path) from None
        raise
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    with os.fdopen(handle, "wb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) or 0 :]
