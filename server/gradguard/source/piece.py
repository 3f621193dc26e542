"""Stretches of a file that are parsed together, and what came of it."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_REFUSED = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What `ast.parse` raises for text it cannot parse, NUL bytes, lone surrogates and deep nesting included."""

_NAMED = re.compile(
    r"(?:(?:[ \t]*@[^\r\n]*|[ \t]*#[^\r\n]*|[ \t]*)(?:\r\n|\n|\r))*[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
)
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why the lines from `first` to `last` have no tree; `line` and `message` are the parser's own."""

    line: int
    message: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that are parsed together.

    line: the first of them. body: statements at their lines. errors: empty when all of it parses.
    members: of a class that was taken apart, its parts below the header, as pieces of their own.
    """

    line: int
    lines: int
    text: str
    body: tuple[ast.stmt, ...] = ()
    errors: tuple[ParseError, ...] = ()
    members: tuple[Piece, ...] = ()

    @property
    def name(self) -> str:
        """Name of the function or class that it defines, else empty."""
        return name_of(self.text)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One top-level statement as the scan sees it."""

    line: int
    lines: int
    offset: int
    text: str
    pieces: tuple[Piece, ...] = ()

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.offset + len(self.text)

    @property
    def broken(self) -> bool:
        """Whether any of its lines has no tree."""
        return any(piece.errors for piece in self.pieces)


def name_of(text: str) -> str:
    """Name of the function or class that a text defines, else empty."""
    match = _NAMED.match(text)
    return match.group(1) if match else ""


def parse(text: str, line: int) -> tuple[list[ast.stmt], ParseError | None]:
    """Statements of a text whose first line has this number; never raises.

    Blank lines in front put the nodes at their lines: much cheaper than moving nodes afterwards.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("\n" * (line - 1) + text).body, None
    except _REFUSED as error:
        at = getattr(error, "lineno", None) or line
        last = line + count_lines(text) - 1
        message = getattr(error, "msg", None) or str(error) or type(error).__name__
        if isinstance(error, UnicodeError):
            # Python's own words count from the start of the piece, which is nobody's concern.
            message = "half of a surrogate pair cannot be encoded"
        return [], ParseError(min(max(at, line), last), message, line, last)


def count_lines(text: str) -> int:
    """Lines that a text takes; a line end at the very end opens no further one."""
    ends = text.count("\n") if "\r" not in text else len(_LINE_END.findall(text))
    return max(1, ends + (not text.endswith(("\n", "\r"))))
