"""Which lines of one text are which of another, where stretches of the one were exchanged."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gradguard.findings import Span
from gradguard.source.piece import count_lines

MAX_LINES = 400
MAX_EQUAL = 20_000
"""Lines between the first and the last difference that are compared, and pairs of equal ones among them. Of more,
only what lies before and behind the differences counts: comparing takes time with both, and nobody typed that."""

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines that both texts have, by the first of them in each. `alive`: of a piece that was not exchanged."""

    typed: int
    read: int
    lines: int
    alive: bool

    @property
    def shift(self) -> int:
        """Lines that what is read is further down."""
        return self.read - self.typed


class Places:
    """The lines that a text as it was typed shares with the text that is read in its place.

    Each line is that of one other line at most, and their order is the same.
    """

    __slots__ = ("_read", "_stretches", "_typed")

    def __init__(self, stretches: Iterable[Stretch]) -> None:
        self._stretches = _joined(stretches)
        self._typed = [each.typed for each in self._stretches]
        self._read = [each.read for each in self._stretches]

    def typed(self, line: int) -> int | None:
        """The typed line that a line which is read is; None where there is none."""
        at = self._at(line)
        return line - self._stretches[at].shift if at is not None else None

    def read(self, line: int) -> int | None:
        """The line that is read for a typed one; None where there is none."""
        at = bisect_right(self._typed, line) - 1
        if at < 0 or line >= self._stretches[at].typed + self._stretches[at].lines:
            return None
        return line + self._stretches[at].shift

    def read_between(self, first: int, last: int) -> tuple[int, int] | None:
        """The first and last line that are read for some of these typed lines; None where none is."""
        inside = [each for each in self._stretches if each.typed <= last and first < each.typed + each.lines]
        if not inside:
            return None
        start, end = inside[0], inside[-1]
        return max(first, start.typed) + start.shift, min(last, end.typed + end.lines - 1) + end.shift

    def span(self, span: Span) -> Span | None:
        """Where a stretch of what is read was typed; None unless each of its lines was, one below the other."""
        first, last = self._at(span.line), self._at(span.end_line)
        if first is None or last is None:
            return None
        run = self._stretches[first : last + 1]
        if not run or any(_gap(one, other) for one, other in pairwise(run)):
            return None
        shift = run[0].shift
        return Span(span.line - shift, span.column, span.end_line - shift, span.end_column)

    def alive(self, span: Span) -> bool:
        """Whether every line of a stretch of what is read is of a piece that was not exchanged."""
        first, last = self._at(span.line), self._at(span.end_line)
        if first is None or last is None or self.span(span) is None:
            return False
        return all(each.alive for each in self._stretches[first : last + 1])

    def _at(self, line: int) -> int | None:
        at = bisect_right(self._read, line) - 1
        if at < 0 or line >= self._stretches[at].read + self._stretches[at].lines:
            return None
        return at


def _gap(one: Stretch, other: Stretch) -> bool:
    return one.shift != other.shift or one.read + one.lines != other.read


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    out: list[Stretch] = []
    for each in stretches:
        if not each.lines:
            continue
        if out and not _gap(out[-1], each) and out[-1].alive == each.alive:
            last = out.pop()
            each = Stretch(last.typed, last.read, last.lines + each.lines, last.alive)
        out.append(each)
    return out


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends; what stands behind the last line end is one, if it is not empty."""
    lines = text.split("\n") if "\r" not in text else _LINE_END.split(text)
    return lines[: count_lines(text)]


def same_lines(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int, int]]:
    """Runs of equal lines in order, as (first in one, first in other, how many): a pure function of the two."""
    limit = min(len(one), len(other))
    start = 0
    while start < limit and one[start] == other[start]:
        start += 1
    end = 0
    while end < limit - start and one[-1 - end] == other[-1 - end]:
        end += 1
    middle, others = one[start : len(one) - end], other[start : len(other) - end]
    runs = [(0, 0, start)]
    if _comparable(middle, others):
        found = difflib.SequenceMatcher(None, middle, others, autojunk=False).get_matching_blocks()
        runs += [(start + each.a, start + each.b, each.size) for each in found]
    runs.append((len(one) - end, len(other) - end, end))
    return [run for run in runs if run[2]]


def _comparable(one: Sequence[str], other: Sequence[str]) -> bool:
    if max(len(one), len(other)) > MAX_LINES:
        return False
    times = Counter(other)
    return sum(times[line] for line in one) <= MAX_EQUAL
