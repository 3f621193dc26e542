"""A text as an editor changes it: in parts, so that a change costs what it changes and not what the text is long.

Nothing here changes; an edited text shares its untouched parts with the one before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter

from lsprotocol import types as lsp

from gradguard.source.lines import LineIndex, width
from gradguard.source.notebook import plain

SIZE = 8000
"""Characters of a part: most texts are one, or a few."""
SMALL = SIZE // 4
"""A shorter one is joined with those beside it."""


class Text:
    """One version of a text."""

    __slots__ = ("_index", "_parts", "_plain", "text")

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.text = parts[0].text if len(parts) == 1 else "".join(map(_TEXT, parts))
        self._index: LineIndex | None = None
        self._plain: str | None = None

    @property
    def plain(self) -> str:
        """The text as Python, for the cell of a notebook."""
        if self._plain is None:
            self._plain = plain(self.text)
        return self._plain

    def as_read(self, first: int, last: int) -> bool:
        """Whether lines are Python as they are, and no magic."""
        if self.plain == self.text:
            return True
        read = LineIndex(self.plain)
        return all(self.index.line(line) == read.line(line) for line in range(first, last + 1))

    @property
    def index(self) -> LineIndex:
        """The lines of the whole text."""
        if self._index is None:
            self._index = self._parts[0].index if len(self._parts) == 1 else LineIndex(self.text)
        return self._index

    def edited(self, changes: Sequence[lsp.TextDocumentContentChangeEvent], encoding: str) -> Text:
        """The text after changes, each of which is about the text after the one before. Positions are clamped to it."""
        parts = self._parts
        for at in reversed(range(len(changes))):
            change = changes[at]
            if not isinstance(change, lsp.TextDocumentContentChangePartial):
                # Of what comes before, nothing is left.
                parts, changes = _split(change.text), changes[at + 1 :]
                break
        edit = _Edit(parts, encoding)
        for change in changes:
            assert isinstance(change, lsp.TextDocumentContentChangePartial)
            start, end = edit.place(change.range.start), edit.place(change.range.end)
            edit.replace(min(start, end), max(start, end), change.text)
        return Text(edit.parts)


def text_of(text: str) -> Text:
    """A text as it was opened."""
    return Text(_split(text))


class _Part:
    """A stretch of a text. None ends within a line end of two characters."""

    __slots__ = ("_index", "_units", "ends", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends = text.count("\n")
        """Number of its line ends."""
        if "\r" in text:
            self.ends += text.count("\r") - text.count("\r\n")
        self._index: LineIndex | None = None
        self._units: tuple[str, int] | None = None

    @property
    def index(self) -> LineIndex:
        """Its lines: the first one may begin, and the last one end, in another part."""
        if self._index is None:
            self._index = LineIndex(self.text)
        return self._index

    def units(self, encoding: str) -> int:
        """Units that it takes."""
        if self._units is None or self._units[0] != encoding:
            self._units = encoding, width(self.text, encoding)
        return self._units[1]


_TEXT, _ENDS = attrgetter("text"), attrgetter("ends")
_Place = tuple[int, int]
"""A part, and an offset in it."""


class _Edit:
    """The parts of a text that is being changed."""

    def __init__(self, parts: Sequence[_Part], encoding: str) -> None:
        self.parts = list(parts)
        self._encoding = encoding
        self._ends = list(map(_ENDS, parts))
        self._units: list[int] | None = None
        """Units that each part takes, once they were asked for."""
        self._sums = list(accumulate(self._ends))
        """Line ends up to and with each part."""

    def place(self, position: lsp.Position) -> _Place:
        """Where a position is."""
        at = bisect_left(self._sums, position.line)
        if at == len(self.parts):
            return at - 1, len(self.parts[-1].text)
        line, units = position.line - self._sums[at] + self._ends[at] + 1, position.character
        index = self.parts[at].index
        if line == index.count and at + 1 < len(self.parts):  # it goes on in the next part
            taken = width(index.line(line), self._encoding)
            if units >= taken:
                last = min(bisect_right(self._sums, self._sums[at], at), len(self.parts) - 1)
                if self._units is None:
                    self._units = [part.units(self._encoding) for part in self.parts]
                before = list(accumulate(self._units[at + 1 : last], initial=taken))
                further = bisect_right(before, units) - 1
                at, line, units = at + 1 + further, 1, units - before[further]
                index = self.parts[at].index
        return at, index.offset(line, index.column(line, units, self._encoding))

    def replace(self, start: _Place, end: _Place, new: str) -> None:
        """Put a text between two places."""
        (low, before), (high, behind) = start, end
        text = self.parts[low].text[:before] + new + self.parts[high].text[behind:]
        high += 1
        if low > 0 and (len(text) < SMALL or self.parts[low - 1].text.endswith("\r")):
            low -= 1
            text = self.parts[low].text + text
        if high < len(self.parts) and (len(text) < SMALL or text.endswith("\r")):
            text += self.parts[high].text
            high += 1
        parts = _split(text)
        self.parts[low:high] = parts
        self._ends[low:high] = map(_ENDS, parts)
        if self._units is not None:
            self._units[low:high] = [part.units(self._encoding) for part in parts]
        self._sums = list(accumulate(self._ends))


def _split(text: str) -> list[_Part]:
    if len(text) <= 2 * SIZE:
        return [_Part(text)]
    found = []
    start = 0
    while start < len(text):
        end = start + SIZE
        if text[end - 1 : end + 1] == "\r\n":
            end += 1
        found.append(_Part(text[start:end]))
        start = end
    return found
