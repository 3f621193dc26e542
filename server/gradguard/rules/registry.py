"""Finds the rules: every module of this folder that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import replace

from gradguard.engine import Analysis
from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Finding, Limit, Related, Span, internal_error, traceback_of
from gradguard.rules import __path__ as _folder
from gradguard.rules.model import Context, Rule, Told


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


Wanted = Callable[[str, str], bool]
"""Whether a rule, by its code, speaks for the file at a path."""


def told(
    analysis: Analysis, faults: list[Limit] | None = None, wanted: Wanted = lambda code, path: True
) -> list[Told]:
    """What the rules make of an analysis, in no particular order.

    faults: where to tell a fault in a rule, which costs one finding; without it the fault is raised.
    wanted: a rule that speaks for none of the files is not run.
    """
    made: list[Told] = []
    quiet = {rule.code for rule in rules() if not any(wanted(rule.code, path) for path in analysis.sources)}
    for event in analysis.events:
        for rule in _by_event().get(type(event), ()):
            if rule.code in quiet:
                continue
            try:
                finding = rule.render(Context(analysis, rule), event)
            except Exception as error:
                if faults is None:
                    raise
                faults.append(_fault(analysis, rule, event, error))
                continue
            if finding is not None:
                made.append(Told(finding, event))
    return _checks_once(_one_a_line(made))


def findings(analysis: Analysis) -> list[Finding]:
    """The findings of all rules; a fault in one is raised."""
    return [each.finding for each in told(analysis)]


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


def _one_a_line(made: list[Told]) -> list[Told]:
    groups: dict[tuple[str, int, str], list[Told]] = {}
    kept: list[Told] = []
    for each in made:
        finding = each.finding
        if finding.code in ONE_A_LINE:
            groups.setdefault((finding.path, finding.span.line, finding.code), []).append(each)
        else:
            kept.append(each)
    for same in groups.values():
        spans = {each.finding.span for each in same}
        first = min(same, key=lambda each: (each.finding.severity.rank, each.finding.sort_key))
        if len(spans) > 1:
            message = f"{first.finding.message} ({len(spans)} reads on this line)"
            first = replace(first, finding=replace(first.finding, message=message))
        kept.append(first)
    return kept


def _checks_once(made: list[Told]) -> list[Told]:
    """Of the argument checks of distributions one note a file: they are switched off in one way, all together."""
    checks: dict[tuple[str, str], list[Told]] = {}
    for each in made:
        if isinstance(each.event, HostRead) and each.event.checks:
            checks.setdefault((each.finding.path, each.finding.code), []).append(each)
    if not checks:
        return made
    told = [each for each in made if not (isinstance(each.event, HostRead) and each.event.checks)]
    for same in checks.values():
        first, *others = sorted(same, key=lambda each: (each.finding.severity.rank, each.finding.sort_key))
        also = tuple(Related(one.finding.path, one.finding.span, ALSO_CHECKED) for one in others)
        told.append(replace(first, finding=replace(first.finding, related=(*first.finding.related, *also))))
    return told


ALSO_CHECKED = "arguments are checked here, too: `validate_args=False` leaves it out"
