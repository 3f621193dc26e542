"""Finds the rules: every module of this folder that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import replace

from gradguard.engine import Analysis
from gradguard.engine.domain.events import Event
from gradguard.findings import Finding, Limit, Span, internal_error, traceback_of
from gradguard.rules import __path__ as _folder
from gradguard.rules.model import Context, Events, Rule


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order of their codes."""
    found: list[Rule] = []
    for module in pkgutil.iter_modules(_folder):
        rule = getattr(importlib.import_module(f"gradguard.rules.{module.name}"), "RULE", None)
        if isinstance(rule, Rule):
            found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.code))


@functools.cache
def _by_event() -> dict[type, list[Rule]]:
    table: dict[type, list[Rule]] = {}
    for rule in rules():
        for kind in rule.events:
            table.setdefault(kind, []).append(rule)
    return table


def findings(analysis: Analysis, faults: list[Limit] | None = None) -> list[Finding]:
    """What the rules make of an analysis, in no particular order.

    faults: where to tell a fault in a rule, which costs one finding, and that fixes were left out; without it the
    fault is raised.
    """
    made: list[Finding] = []
    events = Events(analysis)
    told: dict[str, int] = {}
    for event in analysis.events:
        for rule in _by_event().get(type(event), ()):
            brief = told.get(rule.code, 0) >= WITH_FIXES
            try:
                finding = rule.render(Context(analysis, rule, events, brief), event)
            except Exception as error:
                if faults is None:
                    raise
                faults.append(_fault(analysis, rule, event, error))
                continue
            if finding is not None:
                made.append(finding)
                told[rule.code] = told.get(rule.code, 0) + 1
    if faults is not None and any(count > WITH_FIXES for count in told.values()):
        faults.append(Limit(analysis.path, Span(1, 1, 1, 1), BRIEF))
    return _one_a_line(made)


WITH_FIXES = 100
"""Findings of one rule in one file whose fixes are worked out: each may look through the whole file."""
BRIEF = f"read in part: of the findings of one rule only the first {WITH_FIXES} have fixes"


def _fault(analysis: Analysis, rule: Rule, event: Event, error: Exception) -> Limit:
    try:
        place = analysis.span(event.place)
    except Exception:
        place = Span(1, 1, 1, 1)
    at = Span(place.line, place.column, place.line, place.column)
    message = f"a finding of {rule.code} is not reported: {internal_error(error)}"
    return Limit(event.place.path, at, message, traceback_of(error))


ONE_A_LINE = frozenset({"GG301", "GG302", "GG303"})
"""Rules that speak once for each line, with the number of reads on it."""


def _one_a_line(made: list[Finding]) -> list[Finding]:
    groups: dict[tuple[str, int, str], list[Finding]] = {}
    kept: list[Finding] = []
    for finding in made:
        if finding.code in ONE_A_LINE:
            groups.setdefault((finding.path, finding.span.line, finding.code), []).append(finding)
        else:
            kept.append(finding)
    for same in groups.values():
        spans = {finding.span for finding in same}
        first = min(same, key=lambda finding: (finding.severity.rank, finding.sort_key))
        kept.append(
            replace(first, message=f"{first.message} ({len(spans)} reads on this line)")
            if len(spans) > 1
            else first
        )
    return kept
