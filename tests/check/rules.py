"""A small set of rules and an engine that finds what it is told, for tests of what comes after."""

from __future__ import annotations

from collections.abc import Callable

from gradguard.check.catalogue import Catalogue, RuleInfo
from gradguard.check.engine import Answer, Engine
from gradguard.findings import Certainty, Finding, Limit, Severity, Span

RULES = Catalogue(
    (
        RuleInfo("GG101", "inplace-on-saved-tensor", "a saved tensor is written"),
        RuleInfo("GG102", "inplace-on-leaf"),
        RuleInfo("GG120", "inplace-on-argument", on=False),
        RuleInfo("GG301", "item-in-loop"),
        RuleInfo("GG901", "unused-ignore"),
    )
)


def rules() -> Catalogue:
    return RULES


def finding(
    line: int,
    code: str = "GG101",
    *,
    path: str = "train.py",
    severity: Severity = Severity.WARNING,
    certainty: Certainty = Certainty.CERTAIN,
    message: str = "message",
) -> Finding:
    rule = RULES.rule(code)
    assert rule is not None
    return Finding(path, Span(line, 1, line, 5), code, rule.name, severity, certainty, message)


def engine(*findings: Finding, limits: tuple[Limit, ...] = ()) -> Engine:
    return lambda source, settings, workspace, wanted: Answer(findings, limits)


def broken_engine(error: Exception) -> Engine:
    def fail(*_: object) -> Answer:
        raise error

    return fail


def refused() -> Catalogue:
    """For asserting that rules are not loaded."""
    raise AssertionError("the rules were loaded")


RulesSource = Callable[[], Catalogue]
