"""What can be done about findings in a stretch of the program. Offers are cheap; edits are worked out when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from gradguard.check.api import Report
from gradguard.check.catalogue import catalogue
from gradguard.check.engine import Wanted
from gradguard.check.selection import Selection, widened
from gradguard.check.workspace import Workspace
from gradguard.findings import Applicability, Finding, FixPlan, Limit, Span
from gradguard.ide import fixall
from gradguard.ide.analysis import Again, Analyser, Analysis, said
from gradguard.ide.edits import Cell, edits_of
from gradguard.ide.ignore import ignoring
from gradguard.ide.trial import Check, Trials
from gradguard.ide.wording import Wording
from gradguard.source.text import Source


class What(str, Enum):
    """Kinds of offers."""

    FIX = "fix"
    REWRITE = "rewrite"
    EXPLAIN = "explain"
    SHOW_ALL = "show-all"
    TURN_OFF = "turn-off"
    IGNORE = "ignore"
    FIX_ALL = "fix-all"


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be done. `about` are the findings it settles."""

    what: What
    title: str
    about: tuple[Finding, ...] = ()
    plan: FixPlan | None = None
    preferred: bool = False
    reason: str = ""
    """What stands for the reason in an ignore comment, for people to write over."""


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of the program and what takes its place."""

    span: Span
    text: str


def offers(analysis: Analysis, findings: Iterable[Finding], span: Span, wording: Wording) -> list[Offer]:
    """What can be done about the findings that touch a stretch, each once: repairs first, ignoring last.

    The likeliest repair of each finding is preferred. Of one that has none, the page says how others do without it.
    """
    path = analysis.source.path
    here = [each for each in findings if each.path == path and touches(each.span, span)]
    out: list[Offer] = []
    seen: set[tuple[str, Span]] = set()
    for finding in here:
        likely = _likeliest(finding)
        for plan in finding.fixes:
            if (plan.title, plan.span) not in seen:
                seen.add((plan.title, plan.span))
                out.append(Offer(What.FIX, _title(plan, wording), (finding,), plan, plan is likely))
    for finding in {each.code: each for each in here if _unrepaired(each, analysis)}.values():
        title = wording.text("explain-rule", code=finding.code, name=finding.name)
        out.append(Offer(What.EXPLAIN, title, (finding,)))
    alive = [each for each in here if each.code != "GG901" and analysis.source.alive(each.span)]
    for finding in {each.code: each for each in alive}.values():
        out.append(Offer(What.SHOW_ALL, wording.text("show-all", code=finding.code), (finding,)))
        out.append(Offer(What.TURN_OFF, wording.text("turn-off", code=finding.code), (finding,)))
    ignored: set[tuple[str, int]] = set()
    for finding in alive:
        line = analysis.source.statement_lines(finding.span.line)[0]
        if (finding.code, line) in ignored:
            continue
        ignored.add((finding.code, line))
        out.append(Offer(What.IGNORE, wording.text("ignore-line", code=finding.code), (finding,)))
        title, reason = wording.text("ignore-line-why", code=finding.code), wording.text("ignore-why")
        out.append(Offer(What.IGNORE, title, (finding,), reason=reason))
    return out


def holding(
    findings: Iterable[Finding], source: Source, report: Report, check: Check, faults: list[Limit]
) -> Iterator[Finding]:
    """Findings with those of their fixes that do what they are offered for, each tried. Costs an analysis for each.

    report: of the program that has the findings, which `check` asks with another text of the source.
    """
    trials = Trials(source, report, check)
    for finding in findings:
        tried = tuple(plan for plan in finding.fixes if trials.edits(finding, plan))
        yield finding if tried == finding.fixes else replace(finding, fixes=tried)
    faults += (limit for limit in trials.writer.limits if limit.fault)


def _unrepaired(finding: Finding, analysis: Analysis) -> bool:
    """Whether a finding has no repair, in a text that could have one."""
    return not finding.fixes and finding.code != "GG901" and analysis.source.alive(finding.span)


def _likeliest(finding: Finding) -> FixPlan | None:
    """The plan that keeps the program's numbers; else the first that makes an edit of its own."""
    for wanted in (Applicability.SAFE, Applicability.UNSAFE):
        for plan in finding.fixes:
            if plan.applicability is wanted:
                return plan
    return None


def _title(plan: FixPlan, wording: Wording) -> str:
    """What a plan does, and how sure it is where that is not certain."""
    title = wording.message(plan.title)
    key = _UNSURE.get(plan.applicability)
    return wording.text(key, title=title) if key else title


_UNSURE = {Applicability.UNSAFE: "action-unsafe", Applicability.MANUAL: "action-manual"}


def in_place(analysis: Analysis, span: Span, wording: Wording, workspace: Workspace) -> list[Offer]:
    """In-place forms of the statement at a stretch that the tape proves. Costs analyses: only when asked for."""
    # Loads the engine, as the analysis has by now.
    from gradguard.ide import inplace

    if not analysis.whole or analysis.limits:
        return []
    plans = inplace.rewrites(analysis.source, span, workspace, known=analysis.outcome.tape)
    return [Offer(What.REWRITE, wording.message(plan.title), (), plan) for plan in plans]


def fix_all(analysis: Analysis, cell: Cell, wording: Wording) -> Offer | None:
    """The offer to make every safe fix; None where there is none to make or a piece does not parse."""
    if not analysis.whole or not fixall.fixable(said(analysis), cell.lines(analysis.source)):
        return None
    return Offer(What.FIX_ALL, wording.text("fix-all"))


def every(
    analysis: Analysis, cell: Cell, workspace: Workspace, analyser: Analyser, faults: list[Limit]
) -> tuple[Change, ...] | None:
    """What the offer to fix everything does: the same as `--fix` on a file with this text. Costs analyses.

    faults: where to tell those that cost a fix.
    """

    check, report, wanted = _checking(analysis, workspace, analyser)
    done = fixall.fixed(analysis.source, report, check, cell=cell, wanted=wanted)
    faults += done.report.faults
    edits = fixall.difference(analysis.source, cell, done)
    return tuple(Change(*each) for each in edits) or None


@dataclass(frozen=True, slots=True)
class Everything:
    """What fixing a whole program does. fixed, left: findings that are gone, and that are still there."""

    changes: tuple[Change, ...]
    fixed: int
    left: int


def everywhere(
    analysis: Analysis, starts: tuple[int, ...], workspace: Workspace, analyser: Analyser, faults: list[Limit]
) -> Everything:
    """Every safe fix of a program, for a notebook of one cell after the other, each in what those before became.

    The changes are for the program as it is now, so that all of them are one edit. starts: the line at which each cell
    begins; faults: where to tell those that cost a fix.
    """

    check, report, wanted = _checking(analysis, workspace, analyser)
    before = analysis.source
    done = fixall.Fixed(before, report, Cell(starts))
    for index in range(len(starts)) if analysis.whole else ():
        cell = replace(done.cell, index=index)
        if fixall.fixable(done.report, cell.lines(done.source)):
            done = fixall.fixed(done.source, done.report, check, cell=cell, wanted=wanted)
    faults += done.report.faults
    edits = [
        edit
        for index in range(len(starts))
        for edit in fixall.difference(
            before, Cell(starts, index), replace(done, cell=replace(done.cell, index=index))
        )
    ]
    had, left = (sum(wanted(each.code, each.path) for each in one.findings) for one in (report, done.report))
    return Everything(tuple(Change(*each) for each in edits), had - left, left)


def _checking(analysis: Analysis, workspace: Workspace, analyser: Analyser) -> tuple[Again, Report, Wanted]:
    """How to check other texts of a program with all rules, what that finds in its own, and which rules are asked for."""
    wide = widened(analysis.settings, catalogue())
    check = Again(wide, workspace, analyser)
    report = said(analysis) if wide == analysis.settings else check(analysis.source)
    return check, report, Selection(analysis.settings, catalogue()).allows


def changes(offer: Offer, analysis: Analysis, faults: list[Limit]) -> tuple[Change, ...] | None:
    """What an offer does to the program; None where it cannot be done, and told in `faults` if that is our mistake."""
    source = analysis.source
    if offer.what is What.IGNORE:
        found = ignoring(offer.about[0], source, offer.reason)
        return (Change(*found),) if found else None
    if offer.plan is None:
        return None
    return tuple(Change(*each) for each in edits_of(offer.plan, source, faults) or ()) or None


def touches(one: Span, other: Span) -> bool:
    """Whether two stretches share a place, their ends included."""
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )
