"""The one way in which files are read: regular files only, up to a size, without ever waiting for one.

A repository can hold more than files: a named pipe that nobody writes to, a link to `/dev/zero`, links in a
loop, a file of many gigabytes. Each of them is refused in words.
"""

from __future__ import annotations

import errno
import os
import stat

from gradguard.source.decode import Decoded, Undecodable, decode_file

SOURCE_BYTES = 16_000_000
"""Of a file with code: over ten times the longest that people write."""
SETTINGS_BYTES = 1_000_000
"""Of a file that says how to work: `pyproject.toml`, `.gitignore`."""
RECORD_BYTES = 64_000_000
"""Of a file that a program wrote: a baseline, a notebook, what a run left."""

_BLOCK = 1 << 20
FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""With which files are opened that are read."""
_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Unreadable(Exception):
    """A file cannot be read; the message says why, without its path."""


class Missing(Unreadable):
    """There is no file of this name."""


def read_bytes(path: str | os.PathLike[str], limit: int = SOURCE_BYTES) -> bytes:
    """Bytes of a regular file of at most `limit` bytes; links are followed. Raises Unreadable."""
    try:
        # What is opened may act on it (a tape rewinds, a pipe wakes its writer), so it is looked at first; and
        # again once it is open, since another may stand there by now.
        _refuse(os.stat(path), limit)
        handle = os.open(path, FLAGS)
    except OSError as error:
        raise unreadable(error) from None
    except ValueError as error:  # a name with a null character
        raise Unreadable(str(error)) from None
    return read_handle(handle, limit)


def open_file(path: str | os.PathLike[str]) -> int:
    """An open regular file of any size, for those who read it piece by piece. Raises Unreadable."""
    try:
        _refuse(os.stat(path), None)
        handle = os.open(path, FLAGS)
        try:
            _refuse(os.fstat(handle), None)
        except Unreadable:
            os.close(handle)
            raise
    except OSError as error:
        raise unreadable(error) from None
    except ValueError as error:  # a name with a null character
        raise Unreadable(str(error)) from None
    return handle


def read_handle(handle: int, limit: int = SOURCE_BYTES) -> bytes:
    """`read_bytes` for an open file, which is closed in any case. Raises Unreadable."""
    try:
        _refuse(os.fstat(handle), limit)
        blocks = []
        size = 0
        while block := os.read(handle, _BLOCK):
            size += len(block)
            if size > limit:  # it grows, or its size is not told, as below /proc
                raise Unreadable(too_large(limit))
            blocks.append(block)
        return b"".join(blocks)
    except OSError as error:
        raise unreadable(error) from None
    finally:
        os.close(handle)


def decode(data: bytes) -> Decoded:
    """Text of a file's bytes. Raises Unreadable."""
    try:
        return decode_file(data)
    except Undecodable as error:
        raise Unreadable(str(error)) from None


def read_file(path: str | os.PathLike[str], limit: int = SOURCE_BYTES) -> Decoded:
    """Text of a file with code, with the form it was read from. Raises Unreadable."""
    return decode(read_bytes(path, limit))


def read_or_none(path: str | os.PathLike[str], limit: int = SOURCE_BYTES) -> str | None:
    """Text of a file with code, None where it cannot be had."""
    try:
        return read_file(path, limit).text
    except Unreadable:
        return None


def read_utf8(path: str | os.PathLike[str], limit: int = SETTINGS_BYTES) -> str:
    """Text of a file that is UTF-8 by its nature, such as TOML and JSON. Raises Unreadable."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def unreadable(error: OSError) -> Unreadable:
    """The reason of an error of the system, in words."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        return Missing(error.strerror or "no such file")
    if error.errno == errno.ELOOP:
        return Unreadable("symbolic links that lead in a circle")
    return Unreadable(error.strerror or str(error))


def kind_of(mode: int) -> str:
    """What a mode says that an entry of a folder is."""
    return next((name for test, name in _KINDS if test(mode)), "something else")


def _refuse(found: os.stat_result, limit: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(f"{kind_of(found.st_mode)}, not a file")
    if limit is not None and found.st_size > limit:
        raise Unreadable(too_large(limit))


def too_large(limit: int) -> str:
    """Why more than this is not read."""
    return f"larger than {limit // 1_000_000} MB, which is as much as is read"
