"""Finds the rules: every module of this folder that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from gradguard.findings import Finding
from gradguard.rules import __path__ as _folder
from gradguard.rules.model import Context, Rule
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
    for event in analysis.events:
        for rule in _by_event().get(type(event), ()):
            finding = rule.render(Context(analysis, rule), event)
            if finding is not None:
                made.append(finding)
    return made
