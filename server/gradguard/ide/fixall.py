"""Every fix that may be made, until none is left: the one way for `--fix` and for the editor's fix-all.

Each round is checked anew. Fixes that overlap wait for the next round. A round counts only when all that its fixes
are for is gone and nothing else is found (`trial`); a program that does not parse is not fixed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeVar

from gradguard.check.api import Report
from gradguard.check.engine import Wanted
from gradguard.findings import Applicability, Finding, FixPlan, Span
from gradguard.fixes.edit import changes
from gradguard.ide.edits import Cell, Edits, Writer
from gradguard.ide.trial import TOO_LONG, UNWRITTEN, Check, Trials, Tried, within
from gradguard.source.text import Source

ROUNDS = 10
TRIES = 64
"""Choices of fixes that are tried in a round."""

T = TypeVar("T")


def _anything(code: str, path: str) -> bool:
    return True


class Made(NamedTuple):
    """A fix of a finding, as it is made."""

    finding: Finding
    plan: FixPlan
    edits: Edits


class Refusal(NamedTuple):
    """A fix of a finding that is left, and what speaks against it."""

    finding: Finding
    plan: FixPlan
    why: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing made of a program. `report` is for the text after."""

    source: Source
    report: Report
    cell: Cell
    kinds: tuple[str, ...] = ()
    """Of the fixes that were made."""
    rounds: int = 0
    refused: tuple[Refusal, ...] = ()
    """Fixes of what is left that were allowed."""

    def after(self, tried: Tried, made: Sequence[Made]) -> Fixed:
        """The same one round on."""
        kinds = (*self.kinds, *(each.plan.kind for each in made))
        return Fixed(tried.source, tried.report, tried.cell, kinds, self.rounds + 1)


def fixed(
    source: Source,
    report: Report,
    check: Check,
    *,
    unsafe: bool = False,
    cell: Cell | None = None,
    wanted: Wanted = _anything,
) -> Fixed:
    """Make every safe fix, with `unsafe` also those that may change numbers. Only edits within `cell` are made.

    wanted: says which rules are to be repaired, by code and path; the report, and those of `check`, have all of them.
    A fault in one fix leaves that one out, and is told in the report.
    """
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    done = Fixed(source, report, cell or Cell())
    writer = Writer()
    refused: list[Refusal] = []
    while done.rounds < ROUNDS:
        writer = Writer()
        after, refused = _round(done, check, allowed, writer, wanted)
        if after is None:
            break
        done = after
    done = replace(done, refused=tuple(refused))
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


def _round(
    done: Fixed, check: Check, allowed: set[Applicability], writer: Writer, wanted: Wanted
) -> tuple[Fixed | None, list[Refusal]]:
    """All fixes that can be made together; where that does not help, the half of them that does, and so on.

    Where none of them does, another fix of one finding.
    """
    source, cell = done.source, done.cell
    if source.errors:
        return None, []
    trials = Trials(source, done.report, check, writer)
    findings = [each for each in done.report.findings if wanted(each.code, each.path)]
    groups = list(_groups(source, findings, allowed, cell.lines(source), writer))
    for chosen in islice(_choices(groups), TRIES):
        tried = trials.together([(each.finding, each.edits) for each in chosen], cell)
        if not tried.why:
            return done.after(tried, chosen), []
    refused: list[Refusal] = []
    for finding in findings:
        for plan in finding.fixes if finding.span.line in cell.lines(source) else ():
            if plan.applicability not in allowed:
                continue
            if len(refused) >= TRIES:
                refused.append(Refusal(finding, plan, TOO_LONG))
                continue
            edits = writer.edits(plan, source)
            alone = trials.together([(finding, edits)], cell) if edits else None
            if edits and alone is not None and not alone.why:
                return done.after(alone, [Made(finding, plan, edits)]), refused
            refused.append(Refusal(finding, plan, alone.why if alone is not None else UNWRITTEN))
    return None, refused


def _choices(groups: list[T]) -> Iterator[list[T]]:
    """All, then each half, then each quarter, down to each alone."""
    parts = [groups] if groups else []
    while parts:
        yield from parts
        halves = [(part[: (len(part) + 1) // 2], part[(len(part) + 1) // 2 :]) for part in parts if part[1:]]
        parts = [half for pair in halves for half in pair]


def _groups(
    source: Source, findings: Iterable[Finding], allowed: set[Applicability], lines: range, writer: Writer
) -> Iterator[Made]:
    """The first allowed fix of each finding, without those that touch earlier ones."""
    taken = _Taken()
    for finding in findings:
        if finding.span.line not in lines:
            continue
        for plan in finding.fixes:
            if plan.applicability not in allowed:
                continue
            edits = writer.edits(plan, source)
            if not edits or not all(within(span, lines) for span, _ in edits):
                continue
            if any(taken.touches(span) for span, _ in edits):
                break
            taken.add(span for span, _ in edits)
            yield Made(finding, plan, edits)
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


def _touch(one: Span, other: Span) -> bool:
    if one == other and (one.line, one.column) == (one.end_line, one.end_column):
        return False  # both insert there: one behind the other
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )
