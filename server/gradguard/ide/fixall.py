"""Every fix that may be made, until none is left: the one way for `--fix` and for the editor's fix-all.

Each round is checked anew. Fixes that overlap wait for the next round. A round counts only when fewer findings
are left and the text still parses; a program that does not parse is not fixed.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from gradguard.check.api import Report
from gradguard.findings import Applicability, FixPlan, Limit, Span, internal_error, traceback_of
from gradguard.fixes.edit import changes
from gradguard.fixes.extent import cost
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source

ROUNDS = 10
TRIES = 64
"""Choices of fixes that are tried in a round."""

T = TypeVar("T")
Check = Callable[[Source], Report]
Edits = tuple[tuple[Span, str], ...]
"""Replacements in one text."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The part of a program that fixes may change: all of it, or one cell of a notebook.

    starts: the line at which each cell begins.
    """

    starts: tuple[int, ...] = (1,)
    index: int = 0

    def lines(self, source: Source) -> range:
        """Its lines."""
        behind = self.starts[self.index + 1 :]
        return range(self.starts[self.index], behind[0] if behind else source.lines.count + 1)

    def stretch(self, source: Source) -> tuple[int, int]:
        """Where its text starts and ends in the program's. The line end behind a cell is none of its own."""
        lines = self.lines(source)
        start, end = source.lines.start(lines.start), source.lines.start(lines.stop)
        if len(self.starts) > 1 and source.text[start:end].endswith("\n"):
            end -= 1
        return start, end

    def grown(self, lines: int) -> Cell:
        """The same cell with more lines in it."""
        until = self.index + 1
        return replace(self, starts=(*self.starts[:until], *(start + lines for start in self.starts[until:])))


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing made of a program. `report` is for the text after."""

    source: Source
    report: Report
    cell: Cell
    kinds: tuple[str, ...] = ()
    """Of the fixes that were made."""
    rounds: int = 0


def fixed(
    source: Source, report: Report, check: Check, *, unsafe: bool = False, cell: Cell | None = None
) -> Fixed:
    """Make every safe fix, with `unsafe` also those that may change numbers. Only edits within `cell` are made.

    A fault in one fix leaves that one out, and is told in the report.
    """
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    done = Fixed(source, report, cell or Cell())
    writer = Writer()
    while done.rounds < ROUNDS:
        writer = Writer()
        after = _round(done, check, allowed, writer)
        if after is None:
            break
        done = after
    return replace(done, report=done.report.with_limits(writer.limits)) if writer.limits else done


def fixable(report: Report, lines: range) -> bool:
    """Whether a safe fix is offered for a finding on these lines."""
    return any(
        plan.applicability is Applicability.SAFE
        for finding in report.findings
        for plan in finding.fixes
        if finding.span.line in lines
    )


def difference(before: Source, cell: Cell, done: Fixed) -> Edits:
    """The edits that lead from the text before to the one after, within the cell."""
    start, end = done.cell.stretch(done.source)
    made = changes(before.lines, *cell.stretch(before), done.source.text[start:end])
    return tuple((edit.span, edit.replacement) for edit in made)


def edits_of(plan: FixPlan, source: Source, faults: list[Limit] | None = None) -> Edits | None:
    """The edits of a fix in the file it is for; None when it cannot be done.

    faults: where to tell a fault, which costs the fix; without it the fault is raised.
    """
    # Loads libcst, which costs more than everything else at start-up.
    from gradguard.fixes import api

    try:
        edits = api.edits(plan, source)
    except Exception as error:
        if faults is None:
            raise
        at = Span(plan.span.line, plan.span.column, plan.span.line, plan.span.column)
        message = f"a fix cannot be written: {internal_error(error)}"
        faults.append(Limit(source.path, at, message, traceback_of(error)))
        return None
    return tuple((edit.span, edit.replacement) for edit in edits) if edits else None


MOST_TEXT = 2_000_000
"""Characters of a file that are read again and again for its fixes: several thousand of them, unless its lines are very long."""


class Writer:
    """Writes the fixes of a file, up to a bound; what is not written is told in `limits`."""

    def __init__(self) -> None:
        self.limits: list[Limit] = []
        self._left = MOST_TEXT

    def edits(self, plan: FixPlan, source: Source) -> Edits | None:
        """As `edits_of`; None also where all fixes together take too long."""
        if self._left > 0:
            self._left -= cost(plan, source)
            if self._left <= 0:
                message = "fixes are written in part: there are too many, or they are in lines too long"
                self.limits.append(Limit(source.path, Span(1, 1, 1, 1), message))
        return edits_of(plan, source, self.limits) if self._left > 0 else None


def _round(done: Fixed, check: Check, allowed: set[Applicability], writer: Writer) -> Fixed | None:
    """All fixes that can be made together; where that does not help, the half of them that does, and so on."""
    source, cell = done.source, done.cell
    groups = [] if source.errors else list(_groups(source, done.report, allowed, cell.lines(source), writer))
    for chosen in islice(_choices(groups), TRIES):
        text = _applied(source, [edit for _, group in chosen for edit in group])
        if text == source.text or not _parses(text):
            continue
        grown = cell.grown(LineIndex(text).count - source.lines.count)
        changed = Source(source.path, text, breaks=grown.starts[1:])
        report = check(changed)
        # What is not seen because of a fault is not repaired.
        sound = not report.lost and len(report.faults) <= len(done.report.faults)
        if sound and len(report.findings) < len(done.report.findings):
            kinds = (*done.kinds, *(kind for kind, _ in chosen))
            return Fixed(changed, report, grown, kinds, done.rounds + 1)
    return None


def _choices(groups: list[T]) -> Iterator[list[T]]:
    """All, then each half, then each quarter, down to each alone."""
    parts = [groups] if groups else []
    while parts:
        yield from parts
        halves = [(part[: (len(part) + 1) // 2], part[(len(part) + 1) // 2 :]) for part in parts if part[1:]]
        parts = [half for pair in halves for half in pair]


def _groups(
    source: Source, report: Report, allowed: set[Applicability], lines: range, writer: Writer
) -> Iterator[tuple[str, Edits]]:
    """Kind and edits of the first allowed fix of each finding, without those that touch earlier ones."""
    taken = _Taken()
    for finding in report.findings:
        if finding.span.line not in lines:
            continue
        for plan in finding.fixes:
            if plan.applicability not in allowed:
                continue
            group = writer.edits(plan, source)
            if not group or not all(_within(span, lines) for span, _ in group):
                continue
            if any(taken.touches(span) for span, _ in group):
                break
            taken.add(span for span, _ in group)
            yield plan.kind, group
            break


class _Taken:
    """Stretches of a text of which no two touch, but that several edits may insert at one place."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def touches(self, span: Span) -> bool:
        """Whether one of them touches this one."""
        at = bisect_left(self._spans, span)
        return any(_touch(span, other) for other in self._spans[max(at - 1, 0) : at + 2])

    def add(self, spans: Iterable[Span]) -> None:
        """Take these, too; they may touch each other."""
        for span in spans:
            if span not in self._spans[bisect_left(self._spans, span) :][:1]:
                insort(self._spans, span)


def _within(span: Span, lines: range) -> bool:
    return lines.start <= span.line and (span.end_line, span.end_column) <= (lines.stop, 1)


def _applied(source: Source, edits: Edits | list[tuple[Span, str]]) -> str:
    """The text with these replacements, each once, in the file's own line ends.

    They do not overlap; what several insert at one place comes in their order.
    """
    line_end = source.lines.line_end
    parts: list[str] = []
    at = 0
    for span, replacement in sorted(dict.fromkeys(edits), key=lambda each: each[0]):
        start = source.lines.offset(span.line, span.column)
        parts += source.text[at:start], replacement.replace("\r\n", "\n").replace("\n", line_end)
        at = source.lines.offset(span.end_line, span.end_column)
    return "".join((*parts, source.text[at:]))


def _touch(one: Span, other: Span) -> bool:
    if one == other and (one.line, one.column) == (one.end_line, one.end_column):
        return False  # both insert there: one behind the other
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
