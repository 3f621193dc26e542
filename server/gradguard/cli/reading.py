"""Files on the disk: read as text with the reason where that fails, and replaced at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gradguard.source.decode import Decoded, Undecodable, decode_file


class Unreadable(Exception):
    """A file cannot be read as text; the message says why, without its path."""


def decode(data: bytes) -> Decoded:
    """Text of a file's bytes. Raises Unreadable."""
    try:
        return decode_file(data)
    except Undecodable as error:
        raise Unreadable(str(error)) from None


def read_file(path: Path) -> Decoded:
    """Text of a file on disk. Raises Unreadable."""
    return decode(read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """Bytes of a file on disk. Raises Unreadable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None


def read_or_none(path: str) -> str | None:
    """Text of a file, None where it cannot be had."""
    try:
        return read_file(Path(path)).text
    except Unreadable:
        return None


def replace_file(path: Path, data: bytes) -> None:
    """Put bytes in the place of a file at once: a reader sees the old or the new, never a part.

    Keeps the mode, and follows a symbolic link to the file it names. Raises OSError.
    """
    target = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(name, target.stat().st_mode & 0o7777)
        else:
            os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
