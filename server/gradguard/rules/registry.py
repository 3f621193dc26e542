"""Finds the rules: every module of this folder that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import replace

from gradguard.findings import Finding
from gradguard.rules import __path__ as _folder
from gradguard.rules.model import Context, Events, Rule
from gradguard.tape.entry import Analysis


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


def findings(analysis: Analysis) -> list[Finding]:
    """What the rules make of an analysis, in no particular order."""
    made: list[Finding] = []
    events = Events(analysis)
    for event in analysis.events:
        for rule in _by_event().get(type(event), ()):
            finding = rule.render(Context(analysis, rule, events), event)
            if finding is not None:
                made.append(finding)
    return _one_a_line(made)


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
