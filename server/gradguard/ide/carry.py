"""What is shown while a piece of the file does not parse: its last findings, moved with the edit, and no new ones.

Two versions of a text are compared by what they share at their start and end. What lies before the difference
stays, what lies behind it moves, and what lay wholly inside it is gone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gradguard.findings import Finding, FixPlan, Related, Span
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source

MAX_LINES = 400
"""Changed lines that are compared one by one; of a larger change only its ends count."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The difference of two texts: `old[start:old_end]` became `new[start:new_end]`.

    same: lines inside that stretch which are there unchanged, by their old number.
    """

    old: LineIndex
    new: LineIndex
    start: int
    old_end: int
    new_end: int
    same: Mapping[int, int]

    def span(self, span: Span) -> Span | None:
        """Where a stretch is now; None when its text is gone."""
        line, end_line = self.same.get(span.line), self.same.get(span.end_line)
        if line is not None and end_line is not None and line <= end_line:
            return Span(line, span.column, end_line, span.end_column)
        first = self.old.offset(span.line, span.column)
        last = self.old.offset(span.end_line, span.end_column)
        start, end = self._offset(first, self.start), self._offset(last, self.new_end, behind=True)
        if last > first and end <= start:
            return None
        return Span(*self.new.position(start), *self.new.position(max(start, end)))

    def _offset(self, at: int, inside: int, *, behind: bool = False) -> int:
        if at < self.start or (at == self.start and (behind or self.start < self.old_end)):
            return at
        return at + self.new_end - self.old_end if at >= self.old_end else inside


def edit(old: LineIndex, new: LineIndex) -> Edit:
    """Compare two texts."""
    before, after = old.text, new.text
    start = _shared(before, after)
    limit = min(len(before), len(after)) - start
    tail = min(_shared(before[::-1], after[::-1]), limit) if limit else 0
    old_end, new_end = len(before) - tail, len(after) - tail
    return Edit(old, new, start, old_end, new_end, _same_lines(old, new, start, old_end, new_end))


def _same_lines(old: LineIndex, new: LineIndex, start: int, old_end: int, new_end: int) -> dict[int, int]:
    first = old.position(start)[0]
    last, new_last = old.position(old_end)[0], new.position(new_end)[0]
    if max(last, new_last) - first > MAX_LINES or last == first == new_last:
        return {}
    lines = [old.line(number) for number in range(first, last + 1)]
    others = [new.line(number) for number in range(first, new_last + 1)]
    same: dict[int, int] = {}
    for block in difflib.SequenceMatcher(None, lines, others, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            if lines[block.a + step].strip():
                same[first + block.a + step] = first + block.b + step
    return same


def carried(before: Iterable[Finding], old: Source, new: Source) -> tuple[Finding, ...]:
    """Findings of the version before that stay because their piece does not parse now."""
    if not new.errors:
        return ()
    change = edit(old.lines, new.lines)
    moved = (move(finding, change, new.path) for finding in before)
    return tuple(each for each in moved if each is not None and new.is_broken(each.span.line))


def live(findings: Iterable[Finding], source: Source) -> tuple[Finding, ...]:
    """Findings in pieces that parse."""
    if not source.errors:
        return tuple(findings)
    return tuple(each for each in findings if not source.is_broken(each.span.line))


def move(finding: Finding, change: Edit, path: str) -> Finding | None:
    """A finding at its new place; None when its text is gone. Fixes are left out: they were made for the old text."""
    span = change.span(finding.span)
    if span is None:
        return None
    related: list[Related] = []
    for each in finding.related:
        place = change.span(each.span) if each.path == path else each.span
        if place is not None:
            related.append(replace(each, span=place))
    fixes: tuple[FixPlan, ...] = ()
    return replace(finding, span=span, related=tuple(related), fixes=fixes)


def _shared(left: str, right: str) -> int:
    """Length of the common prefix; compares blocks, as a loop over characters is too slow for a keystroke."""
    size = min(len(left), len(right))
    if left[:size] == right[:size]:
        return size
    low = 0
    for block in (4096, 64):
        while left[low : low + block] == right[low : low + block]:
            low += block
    while low < size and left[low] == right[low]:
        low += 1
    return low
