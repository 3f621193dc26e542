"""What can be done about findings in a stretch of the program. Offers are cheap; edits are worked out when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from gradguard.check.api import Report
from gradguard.check.workspace import Workspace
from gradguard.findings import Applicability, Finding, FixPlan, Limit, Span
from gradguard.ide import fixall
from gradguard.ide.analysis import Analyser, Analysis
from gradguard.ide.analysis import analysis as analyse
from gradguard.ide.fixall import Cell
from gradguard.ide.ignore import ignoring
from gradguard.ide.wording import Wording
from gradguard.source.text import Source


class What(str, Enum):
    """Kinds of offers."""

    FIX = "fix"
    REWRITE = "rewrite"
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

    @property
    def manual(self) -> bool:
        """Whether it only says what to do."""
        return self.plan is not None and self.plan.applicability is Applicability.MANUAL


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of the program and what takes its place."""

    span: Span
    text: str


def offers(analysis: Analysis, findings: Iterable[Finding], span: Span, wording: Wording) -> list[Offer]:
    """What can be done about the findings that touch a stretch, fixes first, each once."""
    path = analysis.source.path
    here = [each for each in findings if each.path == path and touches(each.span, span)]
    out: list[Offer] = []
    seen: set[tuple[str, Span]] = set()
    for finding in here:
        safe = [plan for plan in finding.fixes if plan.applicability is Applicability.SAFE]
        for plan in finding.fixes:
            what = What.FIX if plan.applicability is not Applicability.UNSAFE else What.REWRITE
            if (plan.title, plan.span) in seen:
                continue
            seen.add((plan.title, plan.span))
            preferred = bool(safe) and plan is safe[0]
            out.append(
                Offer(
                    What.FIX if what is What.FIX else What.REWRITE,
                    wording.message(plan.title),
                    (finding,),
                    plan,
                    preferred,
                )
            )
    ignored: set[tuple[str, int]] = set()
    for finding in here:
        line = analysis.source.statement_lines(finding.span.line)[0]
        if (
            finding.code == "GG901"
            or (finding.code, line) in ignored
            or not analysis.source.alive(finding.span)
        ):
            continue
        ignored.add((finding.code, line))
        out.append(Offer(What.IGNORE, wording.text("ignore-line", code=finding.code), (finding,)))
        title, reason = wording.text("ignore-line-why", code=finding.code), wording.text("ignore-why")
        out.append(Offer(What.IGNORE, title, (finding,), reason=reason))
    return out


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
    if not analysis.whole or not fixall.fixable(_report(analysis), cell.lines(analysis.source)):
        return None
    return Offer(What.FIX_ALL, wording.text("fix-all"))


def every(
    analysis: Analysis, cell: Cell, workspace: Workspace, analyser: Analyser, faults: list[Limit]
) -> tuple[Change, ...] | None:
    """What the offer to fix everything does: the same as `--fix` on a file with this text. Costs analyses.

    faults: where to tell those that cost a fix.
    """

    def check(source: Source) -> Report:
        return _report(analyse(source, analysis.settings, workspace, analyser))

    done = fixall.fixed(analysis.source, _report(analysis), check, cell=cell)
    faults += done.report.faults
    edits = fixall.difference(analysis.source, cell, done)
    return tuple(Change(*each) for each in edits) or None


def _report(analysis: Analysis) -> Report:
    return replace(analysis.outcome.report, findings=analysis.findings)


def changes(offer: Offer, analysis: Analysis, faults: list[Limit]) -> tuple[Change, ...] | None:
    """What an offer does to the program; None where it cannot be done, and told in `faults` if that is our mistake."""
    source = analysis.source
    if offer.what is What.IGNORE:
        found = ignoring(offer.about[0], source, offer.reason)
        return (Change(*found),) if found else None
    if offer.plan is None:
        return None
    return tuple(Change(*each) for each in fixall.edits_of(offer.plan, source, faults) or ()) or None


def touches(one: Span, other: Span) -> bool:
    """Whether two stretches share a place, their ends included."""
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )
