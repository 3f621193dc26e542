"""Where lines start, and columns in every unit that someone counts in.

Lines end at `\\n`, `\\r\\n` and `\\r` only, as `ast` and editors have it. `str.splitlines` also ends them at
form feeds, U+2028 and others, so it must not be used on source text.

Lines count from 1. Columns count code points from 1, unless a name says otherwise: *units* are what the
language server protocol counts from 0 in the encoding that was negotiated, *bytes* what `ast` counts from 0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, count
from operator import add

ENCODINGS = ("utf-8", "utf-16", "utf-32")

LONG = 1024
"""Characters of a line from which on it is converted in stretches."""

_LINE_END = re.compile(r"\r\n|\n|\r")


class LineIndex:
    """The lines of one text. All conversions clamp: no position is refused."""

    __slots__ = ("_ends", "_long", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._long: dict[tuple[int, str], list[int]] = {}
        end = "\r\n" if "\r" in text else "\n"
        if end == "\r\n" and not text.count(end) == text.count("\r") == text.count("\n"):
            found = [match.span() for match in _LINE_END.finditer(text)]
            self._starts = [0, *(end for _, end in found)]
            self._ends = [*(start for start, _ in found), len(text)]
            return
        # Without a loop: this is done for every edit.
        before = list(accumulate(map(len, text.split(end))))
        self._ends = list(map(add, before, count(0, len(end))))
        self._starts = [0, *map(add, before, count(len(end), len(end)))]
        self._starts.pop()

    @property
    def count(self) -> int:
        """Number of lines; a line end at the very end opens one more, empty line."""
        return len(self._starts)

    @property
    def line_end(self) -> str:
        """The line end that most lines of this text have, `\\n` where there is only one line."""
        if "\r" not in self.text:
            return "\n"
        windows, unix = self.text.count("\r\n"), self.text.count("\n")
        if windows * 2 > unix:
            return "\r\n"
        return "\n" if unix else "\r"

    def line(self, number: int) -> str:
        """Text of a line without its line end; empty for a line that does not exist."""
        if not 0 < number <= len(self._starts):
            return ""
        return self.text[self._starts[number - 1] : self._ends[number - 1]]

    def start(self, number: int) -> int:
        """Offset of a line's first character; the end of the text for a line behind the last."""
        if number < 1:
            return 0
        return self._starts[number - 1] if number <= len(self._starts) else len(self.text)

    def offset(self, line: int, column: int) -> int:
        """Offset of a position."""
        if line < 1:
            return 0
        if line > len(self._starts):
            return len(self.text)
        start = self._starts[line - 1]
        return min(start + max(column - 1, 0), self._ends[line - 1])

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def units(self, line: int, column: int, encoding: str) -> int:
        """Units before a column."""
        start, size = self._extent(line)
        points = min(max(column - 1, 0), size)
        if encoding == "utf-32" or self.text.isascii():
            return points
        at, seen = 0, 0
        if size > LONG:
            marks = self._marks(line, encoding)
            at = points // LONG
            at, seen = at * LONG, marks[at]
        return seen + width(self.text[start + at : start + points], encoding)

    def column(self, line: int, units: int, encoding: str) -> int:
        """Column of a count of units. Inside a character that takes several units: the column it starts at."""
        start, size = self._extent(line)
        units = max(units, 0)
        if encoding == "utf-32" or self.text.isascii():
            return min(units, size) + 1
        at, seen = 0, 0
        if size > LONG:
            marks = self._marks(line, encoding)
            at = bisect_right(marks, units) - 1
            at, seen = at * LONG, marks[at]
        text = self.text[start + at : start + min(at + LONG, size)]
        if text.isascii():
            return min(at + units - seen, size) + 1
        for char in text:
            seen += width(char, encoding)
            if seen > units:
                return at + 1
            at += 1
        return size + 1

    def _extent(self, line: int) -> tuple[int, int]:
        """Offset and length of a line; nothing for one that does not exist."""
        if not 0 < line <= len(self._starts):
            return 0, 0
        return self._starts[line - 1], self._ends[line - 1] - self._starts[line - 1]

    def _marks(self, line: int, encoding: str) -> list[int]:
        """Units before each stretch of a long line: asked for once a position, it is not counted through each time."""
        key = line, encoding
        if key not in self._long:
            start, size = self._extent(line)
            stretches = (self.text[start + at : start + min(at + LONG, size)] for at in range(0, size, LONG))
            self._long[key] = [0, *accumulate(width(stretch, encoding) for stretch in stretches)]
        return self._long[key]

    def column_of_byte(self, line: int, offset: int) -> int:
        """Column of a count of bytes in UTF-8."""
        return self.column(line, offset, "utf-8")


def width(text: str, encoding: str) -> int:
    """Units that a text takes; a lone surrogate counts as the one unit (three bytes) it was sent as."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
