"""What a fix does to a text."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from gradguard.findings import Span
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A stretch of a text and what takes its place."""

    span: Span
    replacement: str


def changes(index: LineIndex, start: int, end: int, new: str) -> tuple[Edit, ...]:
    """The smallest edits that make a text from `start` to `end`, where lines begin and end, read `new`."""
    before, after = lines(index.text[start:end]), lines(new)
    edits: list[Edit] = []
    at = [0, *accumulate(map(len, before))]
    for i1, i2, j1, j2 in _differences(before, after):
        edits.append(_trimmed(index, start + at[i1], "".join(before[i1:i2]), "".join(after[j1:j2])))
    return tuple(edits)


MOST_COMPARED = 40_000
"""Pairs of lines that are compared one by one."""

Stretches = tuple[int, int, int, int]
"""Lines from the first number to the second, in the place of which are those from the third to the fourth."""


def _differences(before: list[str], after: list[str]) -> Iterator[Stretches]:
    """Where two lists of lines differ.

    What lies between them is compared line by line only where it is short. Elsewhere lines that occur once in both
    part it, and where there are none it differs as a whole.
    """
    waiting: list[Stretches] = [(0, len(before), 0, len(after))]
    while waiting:
        i1, i2, j1, j2 = waiting.pop()
        while i1 < i2 and j1 < j2 and before[i1] == after[j1]:
            i1, j1 = i1 + 1, j1 + 1
        while i1 < i2 and j1 < j2 and before[i2 - 1] == after[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
        if i1 == i2 and j1 == j2:
            continue
        if (i2 - i1) * (j2 - j1) <= MOST_COMPARED:
            matcher = difflib.SequenceMatcher(None, before[i1:i2], after[j1:j2], autojunk=False)
            for tag, a1, a2, b1, b2 in matcher.get_opcodes():
                if tag != "equal":
                    yield i1 + a1, i1 + a2, j1 + b1, j1 + b2
            continue
        anchors = _anchors(before[i1:i2], after[j1:j2])
        if not anchors:
            yield i1, i2, j1, j2
            continue
        parts: list[Stretches] = []
        i, j = i1, j1
        for at, other in anchors:
            parts.append((i, i1 + at, j, j1 + other))
            i, j = i1 + at + 1, j1 + other + 1
        parts.append((i, i2, j, j2))
        waiting += reversed(parts)


def _anchors(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Lines that occur once in both lists, as many as follow each other in both."""
    here, there = _once(before), _once(after)
    pairs = [(here[line], at) for line, at in there.items() if line in here]
    # The longest row of pairs that rises: each pile ends in the lowest that a row of its length may end in.
    piles: list[int] = []
    tops: list[int] = []
    behind: list[int] = []
    for number, (at, _) in enumerate(pairs):
        pile = bisect_left(tops, at)
        behind.append(piles[pile - 1] if pile else -1)
        piles[pile : pile + 1] = [number]
        tops[pile : pile + 1] = [at]
    row: list[tuple[int, int]] = []
    last = piles[-1] if piles else -1
    while last >= 0:
        row.append(pairs[last])
        last = behind[last]
    return row[::-1]


def _once(lines: list[str]) -> dict[str, int]:
    """The lines that occur once, in order, with their number."""
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def lines(text: str) -> list[str]:
    """Lines with their ends, as Python counts them (`str.splitlines` ends lines at other characters too)."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text)


def _trimmed(index: LineIndex, offset: int, old: str, new: str) -> Edit:
    """One replacement without the ends that both texts share; never between the halves of a line end."""
    lead = 0
    while lead < min(len(old), len(new)) and old[lead] == new[lead]:
        lead += 1
    if old[lead - 1 : lead] == "\r":
        lead -= 1
    tail = 0
    while tail < min(len(old), len(new)) - lead and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if tail and old[len(old) - tail] == "\n" and old[: len(old) - tail].endswith("\r"):
        tail -= 1
    stop = len(old) - tail
    line, column = index.position(offset + lead)
    end_line, end_column = index.position(offset + stop)
    return Edit(Span(line, column, end_line, end_column), new[lead : len(new) - tail])


def applied(source: Source, edits: Iterable[Edit]) -> str:
    """The text with these edits, which must not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += source.text[at : source.lines.offset(edit.span.line, edit.span.column)], edit.replacement
        at = source.lines.offset(edit.span.end_line, edit.span.end_column)
    return "".join((*parts, source.text[at:]))


def collide(one: Span, other: Span) -> bool:
    """Whether two stretches share text, or begin at the same place."""
    start = max((one.line, one.column), (other.line, other.column))
    end = min((one.end_line, one.end_column), (other.end_line, other.end_column))
    return start < end or (one.line, one.column) == (other.line, other.column)
