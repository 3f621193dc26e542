"""Bytes of a Python file to text and back: byte order marks and encoding lines (PEP 263) are honoured."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass


class Undecodable(ValueError):
    """The bytes are no text in the encoding they claim; the message says where."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file as read: `text` has no byte order mark and the line ends of the file."""

    text: str
    data: bytes
    encoding: str
    bom: bool

    def encode(self, text: str) -> bytes:
        """Bytes of another text in the same form. Raises Undecodable where the encoding cannot express it."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise Undecodable(
                f'"{character}" cannot be written in the file\'s encoding {self.encoding}'
            ) from None
        return codecs.BOM_UTF8 + data if self.bom else data


def decode(data: bytes) -> str:
    """Text without a byte order mark, line ends as they are. Raises Undecodable."""
    return decode_file(data).text


def decode_file(data: bytes) -> Decoded:
    """Text together with the form it was read from. Raises Undecodable."""
    for mark, name in _WIDE:
        if data.startswith(mark):
            raise Undecodable(f"{name}, which Python does not read; save it as UTF-8")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as wrong:
            raise Undecodable(_not_utf8(body, wrong)) from None
        raise Undecodable(str(error.msg or error)) from None
    encoding = "utf-8" if found.startswith("utf-8") else found
    if codecs.lookup(encoding).name in _FOR_NAMES:
        raise Undecodable(f"{encoding} is no encoding for files")
    try:
        return Decoded(body.decode(encoding), data, encoding, bom)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            raise Undecodable(_not_utf8(body, error)) from None
        line = body.count(b"\n", 0, error.start) + 1
        raise Undecodable(
            f"line {line}: not valid {encoding}, as its encoding line says: {error.reason}"
        ) from None
    except (LookupError, UnicodeError) as error:
        # Codecs from bytes to bytes (`hex`) are found by name but give no text.
        raise Undecodable(str(error)) from None


_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_FOR_NAMES = frozenset(("idna", "punycode", "undefined"))
"""Encodings of the names of hosts, which take a time that grows with the square of a text, and the one that has none."""


def _not_utf8(body: bytes, error: UnicodeDecodeError) -> str:
    line = body.count(b"\n", 0, error.start) + 1
    byte = body[error.start]
    return f"line {line}: not UTF-8 (byte 0x{byte:02x}); name its encoding in the first line: # -*- coding: latin-1 -*-"
