"""A JSON value and some bytes as one message, between processes and through Ray's object store."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Sequence
from typing import Any

MOST = 2_000_000_000
"""Bytes of a message."""

_LENGTH = struct.Struct("<Q")


class Broken(Exception):
    """What came is no message, or its end is missing."""


def packed(head: Any, parts: Sequence[bytes] = (), *, level: int = 1) -> bytes:
    """One message. Texts of programs shrink to a quarter; what is compressed already has level 0."""
    text = json.dumps([head, [len(part) for part in parts]], separators=(",", ":")).encode()
    return zlib.compress(b"".join((_LENGTH.pack(len(text)), text, *parts)), level)


def unpacked(message: bytes) -> tuple[Any, list[bytes]]:
    """What `packed` was given. Raises Broken."""
    try:
        opener = zlib.decompressobj()
        data = opener.decompress(message, MOST)
        if not opener.eof:
            raise Broken("a message that is too long")
        (length,) = _LENGTH.unpack_from(data)
        at = _LENGTH.size + length
        head, lengths = json.loads(data[_LENGTH.size : at])
        parts = []
        for size in lengths:
            parts.append(data[at : at + size])
            at += size
    except (zlib.error, struct.error, ValueError, TypeError, RecursionError) as error:
        raise Broken(str(error)) from None
    return head, parts


def send(handle: int, message: bytes) -> None:
    """Write a message to a pipe. Raises OSError."""
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(handle, rest) :]


class Incoming:
    """Messages from a pipe, put together from what has come so far."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """What was read from the pipe."""
        self._data += data

    def take(self) -> bytes | None:
        """The next message that is whole, None where none is yet. Raises Broken."""
        if len(self._data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._data)
        if length > MOST:
            raise Broken("a message that is too long")
        end = _LENGTH.size + length
        if len(self._data) < end:
            return None
        message = bytes(self._data[_LENGTH.size : end])
        del self._data[:end]
        return message
