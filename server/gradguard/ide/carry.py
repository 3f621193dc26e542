"""What is shown while a piece of the file does not parse: its last findings, moved with the edit, and no new ones.

Two versions of a text are compared by what they share at their start and end. What lies before the difference
stays, what lies behind it moves, and what lay wholly inside it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradguard.findings import Finding, FixPlan, Related, Span
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source


@dataclass(frozen=True, slots=True)
class Edit:
    """The one stretch in which two texts differ: `old[start:old_end]` became `new[start:new_end]`."""

    old: LineIndex
    new: LineIndex
    start: int
    old_end: int
    new_end: int

    def offset(self, at: int, *, end: bool = False) -> int | None:
        """Where an offset of the old text is now; None inside what was replaced."""
        if at < self.start or (at == self.start and (end or self.start < self.old_end)):
            return at
        if at >= self.old_end:
            return at + self.new_end - self.old_end
        return None

    def span(self, span: Span) -> Span | None:
        """Where a stretch is now; None when it was replaced as a whole."""
        first = self.old.offset(span.line, span.column)
        last = self.old.offset(span.end_line, span.end_column)
        start, end = self.offset(first), self.offset(last, end=True)
        if start is None and end is None:
            return None
        start = self.start if start is None else start
        end = self.new_end if end is None else end
        if end <= start < last + self.new_end - self.old_end:
            return None
        return Span(*self.new.position(start), *self.new.position(max(start, end)))


def edit(old: LineIndex, new: LineIndex) -> Edit:
    """The difference of two texts."""
    before, after = old.text, new.text
    start = _shared(before, after)
    limit = min(len(before), len(after)) - start
    tail = _shared(before[::-1], after[::-1]) if limit else 0
    tail = min(tail, limit)
    return Edit(old, new, start, len(before) - tail, len(after) - tail)


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
