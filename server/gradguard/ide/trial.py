"""Whether a fix does what it is offered for: it is made, and the text that comes out is checked as the one before was.

    the mistake       is found no more
    everything else   is found only where it was found before, and no louder
    the answer        is as whole as the one before

This is the one place that says so, for whatever offers a fix with its edits or makes it: code actions, reports with
edits, `--fix` and the editor's fix-all. Nothing is tried before somebody asks for fixes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradguard.check.api import Report
from gradguard.check.ignores import UNUSED
from gradguard.findings import Finding, FixPlan, Limit, Severity, Span
from gradguard.ide.edits import Cell, Edits, Writer, applied, parses
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source

Check = Callable[[Source], Report]
MOST_TRIED = 5_000_000
"""Characters of text that are checked to try the fixes of one file, each time all of it: of one of 1,000 lines a hundred."""

TOO_MANY = "fixes are tried in part: there are too many for a file of this length"
TOO_LONG = "there are too many fixes to try them all"
OUTSIDE = "it would change another cell"
UNWRITTEN = "it cannot be written here"
BROKEN = "Python would not read the result"
UNSEEN = "the result cannot be analysed to its end"


@dataclass(frozen=True, slots=True)
class Tried:
    """The text with some fixes, and what is found in it. why: what speaks against them; empty where nothing does."""

    source: Source
    report: Report
    cell: Cell
    why: str = ""


class Trials:
    """Tries fixes of one text."""

    def __init__(self, source: Source, report: Report, check: Check, writer: Writer | None = None) -> None:
        """report: of the source. check: gives one for a text that differs from it, never raises."""
        self.source, self.report = source, report
        self.writer = writer or Writer()
        self._check = check
        self._left = MOST_TRIED
        self._known: dict[str, Report] = {}

    def edits(self, finding: Finding, plan: FixPlan) -> Edits | None:
        """The edits of a fix that does what it is offered for; None for another."""
        edits = self.writer.edits(plan, self.source)
        return edits if edits and not self.one(finding, plan, edits).why else None

    def one(self, finding: Finding, plan: FixPlan, edits: Edits | None = None) -> Tried:
        """What a fix alone would come to."""
        starts = (1, *self.source.breaks)
        cell = Cell(starts, bisect_right(starts, plan.span.line) - 1)
        edits = edits or self.writer.edits(plan, self.source)
        return self.together([(finding, edits)], cell) if edits else self._not(cell, UNWRITTEN)

    def together(self, fixes: Sequence[tuple[Finding, Edits]], cell: Cell) -> Tried:
        """What fixes of one cell would come to, made at once. They do not overlap."""
        edits = [each for _, own in fixes for each in own]
        if not all(within(span, cell.lines(self.source)) for span, _ in edits):
            return self._not(cell, OUTSIDE)
        text = applied(self.source, edits)
        if text == self.source.text:
            return self._not(cell, UNWRITTEN)
        if not self.source.errors and not parses(text):
            return self._not(cell, BROKEN)
        cell = cell.grown(LineIndex(text).count - self.source.lines.count)
        changed = Source(self.source.path, text, breaks=cell.starts[1:])
        if len(changed.errors) > len(self.source.errors):
            return self._not(cell, BROKEN)
        report = self._known.get(text)
        if report is None:
            if self._left <= 0:
                return self._not(cell, TOO_LONG)
            self._left -= len(text)
            if self._left <= 0:
                self.writer.limits.append(Limit(self.source.path, Span(1, 1, 1, 1), TOO_MANY))
            report = self._known[text] = self._check(changed)
        moves = _Moves(self.source, edits)
        return Tried(changed, report, cell, against(self.report, report, moves, [one for one, _ in fixes]))

    def _not(self, cell: Cell, why: str) -> Tried:
        return Tried(self.source, self.report, cell, why)


def within(span: Span, lines: range) -> bool:
    """Whether a stretch lies in some whole lines; the line end of the last is theirs."""
    return lines.start <= span.line and (span.end_line, span.end_column) <= (lines.stop, 1)


def against(before: Report, after: Report, moves: _Moves, about: Sequence[Finding]) -> str:
    """What speaks against a change that is to settle some findings; empty where nothing does."""
    # What is not seen is not repaired.
    if after.lost or len(after.limits) > len(before.limits) or len(after.faults) > len(before.faults):
        return UNSEEN
    had = [*before.findings, *before.elsewhere]
    have = [*after.findings, *after.elsewhere]
    settled = Counter(moves.before(each) for each in about)
    here, there = Counter(map(moves.before, had)), Counter(map(moves.after, have))
    for finding in about:
        key = moves.before(finding)
        if there[key] > here[key] - settled[key]:
            return f"{finding.code} would be found there again"
    raised = Counter(moves.before(each) for each in had if _loud(each))
    raises = Counter(moves.after(each) for each in have if _loud(each))
    for finding in have:
        key = moves.after(finding)
        if there[key] <= here[key] and raises[key] <= raised[key]:
            continue
        # That a comment silences nothing any more is no mistake of the program.
        if finding.code != UNUSED[0]:
            return f"{finding.code} would be found in line {finding.span.line}"
    return ""


def _loud(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


Key = tuple[str, str, int]
"""File, rule, and line as it is after the change; 0 for all that is changed together."""


class _Moves:
    """Where the lines of a text are once some edits were made."""

    def __init__(self, source: Source, edits: Iterable[tuple[Span, str]]) -> None:
        self._path = source.path
        self._old = [(0, 0)]
        """First and last lines of what is changed, as they were, and as they are."""
        self._new = [(0, 0)]
        shift = 0
        for span, text in _joined(sorted(edits)):
            first = span.line + shift
            shift += text.count("\n") - (span.end_line - span.line)
            self._old.append((span.line, span.end_line))
            self._new.append((first, span.end_line + shift))

    def before(self, finding: Finding) -> Key:
        """Of a finding in the text before."""
        line = finding.span.line
        if finding.path == self._path:
            at = bisect_right(self._old, line, key=lambda each: each[0]) - 1
            line = 0 if line <= self._old[at][1] else line + self._new[at][1] - self._old[at][1]
        return finding.path, finding.code, line

    def after(self, finding: Finding) -> Key:
        """Of a finding in the text after."""
        line = finding.span.line
        if finding.path == self._path:
            at = bisect_right(self._new, line, key=lambda each: each[0]) - 1
            line = 0 if line <= self._new[at][1] else line
        return finding.path, finding.code, line


def _joined(edits: Sequence[tuple[Span, str]]) -> Iterator[tuple[Span, str]]:
    """The same with those that share a line as one."""
    held: tuple[Span, str] | None = None
    for span, text in edits:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if held is not None and span.line <= held[0].end_line:
            one = held[0]
            held = (
                Span(one.line, one.column, max(one.end_line, span.end_line), span.end_column),
                held[1] + text,
            )
            continue
        if held is not None:
            yield held
        held = span, text
    if held is not None:
        yield held
