"""Bytes of a Python file to text and back, so that a fix changes nothing but what it means to change.

Encoding cookies (PEP 263) and byte order marks are honoured in both directions, line ends stay as they are.
"""

from __future__ import annotations

import codecs
import io
import os
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path


class Unreadable(Exception):
    """A file cannot be read as text; the message says why, without its path."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as read: `text` has no byte order mark and the line ends of the file."""

    text: str
    data: bytes
    encoding: str
    bom: bool

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        windows = self.data.count(b"\r\n")
        return "\r\n" if windows * 2 > self.data.count(b"\n") else "\n"

    def encode(self, text: str) -> bytes:
        """Bytes of another text in the same form. Raises Unreadable where the encoding cannot express it."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise Unreadable(
                f"the change cannot be written in the file's encoding {self.encoding}: {error}"
            ) from None
        return codecs.BOM_UTF8 + data if self.bom else data


def decode(data: bytes) -> FileText:
    """Text of a file's bytes. Raises Unreadable."""
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as wrong:
            raise Unreadable(_not_utf8(body, wrong)) from None
        raise Unreadable(str(error.msg or error)) from None
    encoding = "utf-8" if found.startswith("utf-8") else found
    try:
        return FileText(body.decode(encoding), data, encoding, bom)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            raise Unreadable(_not_utf8(body, error)) from None
        line = body.count(b"\n", 0, error.start) + 1
        raise Unreadable(
            f"line {line}: not valid {encoding}, as its encoding line says: {error.reason}"
        ) from None


def read_file(path: Path) -> FileText:
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


def _not_utf8(body: bytes, error: UnicodeDecodeError) -> str:
    line = body.count(b"\n", 0, error.start) + 1
    byte = body[error.start]
    return f"line {line}: not UTF-8 (byte 0x{byte:02x}); name its encoding in the first line: # -*- coding: latin-1 -*-"
