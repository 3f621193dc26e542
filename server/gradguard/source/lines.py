"""Where lines start, and columns in every unit that someone counts in.

Lines end at `\\n`, `\\r\\n` and `\\r` only, as `ast` and editors have it. `str.splitlines` also ends them at
form feeds, U+2028 and others, so it must not be used on source text.

Lines count from 1. Columns count code points from 1, unless a name says otherwise: *units* are what the
language server protocol counts from 0 in the encoding that was negotiated, *bytes* what `ast` counts from 0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

ENCODINGS = ("utf-8", "utf-16", "utf-32")

_LINE_END = re.compile(r"\r\n|\n|\r")


class LineIndex:
    """The lines of one text. All conversions clamp: no position is refused."""

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        if "\r" in text:
            found = [match.span() for match in _LINE_END.finditer(text)]
            self._starts = [0, *(end for _, end in found)]
            self._ends = [*(start for start, _ in found), len(text)]
        else:
            self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
            self._ends = [start - 1 for start in self._starts[1:]]
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
        text = self.line(line)
        points = min(max(column - 1, 0), len(text))
        if encoding == "utf-32" or text.isascii():
            return points
        return width(text[:points], encoding)

    def column(self, line: int, units: int, encoding: str) -> int:
        """Column of a count of units. Inside a character that takes several units: the column it starts at."""
        text = self.line(line)
        units = max(units, 0)
        if encoding == "utf-32" or text.isascii():
            return min(units, len(text)) + 1
        seen = 0
        for at, char in enumerate(text):
            seen += width(char, encoding)
            if seen > units:
                return at + 1
        return len(text) + 1

    def column_of_byte(self, line: int, offset: int) -> int:
        """Column of a count of bytes in UTF-8."""
        return self.column(line, offset, "utf-8")


def width(text: str, encoding: str) -> int:
    """Units that a text takes; a lone surrogate counts as the one unit (three bytes) it was sent as."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(char > "\uffff" for char in text)
