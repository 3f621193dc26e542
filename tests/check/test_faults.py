"""A fault in a rule costs one finding, one in the engine a function: the rest of the report stands, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradguard.check.api import Report, check
from gradguard.check.settings import Level, Settings
from gradguard.check.workspace import EMPTY
from gradguard.engine import analyse as run_tape
from gradguard.engine.domain.events import Event, SavedTensorMutated
from gradguard.engine.models import library
from gradguard.findings import FixPlan, Limit, Span
from gradguard.fixplans import plans
from gradguard.fixplans.model import Context as PlanContext
from gradguard.ide.analysis import analyse, analysis
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.rules.model import Context
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES

BAD = """\
def {name}(x):
    y = torch.rand(3, requires_grad=True).exp()
    y += 1
    y.sum().backward()
"""
TWO = "import torch\n" + BAD.format(name="one") + BAD.format(name="two")


@pytest.fixture(params=[ValueError("secret"), RecursionError(), MemoryError()])
def error(request: pytest.FixtureRequest) -> Exception:
    one: Exception = request.param
    return one


@pytest.fixture
def rule_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Exception:
    """The rule has a mistake that shows in line 4."""

    def broken(context: Context, event: Event) -> object:
        if context.span(event.place).line == 4:
            raise error
        return own.render(context, event)

    table = {kind: list(rules) for kind, rules in registry._by_event().items()}
    (own,) = {rule for rules in table.values() for rule in rules if rule.code == "GG101"}
    for rules in table.values():
        rules[:] = [replace(rule, render=broken) if rule is own else rule for rule in rules]
    monkeypatch.setattr(registry, "_by_event", lambda: table)
    return error


@pytest.fixture
def engine_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ValueError("secret")

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", broken)


def checked(text: str) -> Report:
    return check(Source("train.py", text), Settings())


def lines(report: Report) -> list[int]:
    return [each.span.line for each in report.findings]


def test_a_fault_in_a_rule_costs_that_finding(rule_fails: Exception) -> None:
    report = checked(TWO)
    assert lines(report) == [8]
    (limit,) = report.faults
    kind = type(rule_fails).__name__
    assert limit.span.line == 4
    assert (
        limit.message
        == f"a finding of GG101 is not reported: internal error {kind} in broken; please report it"
    )
    assert "Traceback" in report.crash
    assert not report.lost


def test_a_fault_in_a_plan_costs_the_fixes_of_that_finding(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = plans.ways_out

    def broken(context: PlanContext, event: SavedTensorMutated) -> list[FixPlan]:
        if context.analysis.span(event.place).line == 4:
            raise error
        return own(context, event)

    monkeypatch.setattr(plans, "ways_out", broken)
    report = checked(TWO)
    assert [(each.span.line, bool(each.fixes)) for each in report.findings] == [(4, False), (8, True)]
    (limit,) = report.faults
    kind = type(error).__name__
    assert limit.span.line == 4
    assert (
        limit.message == f"a finding of GG101 has no fixes: internal error {kind} in broken; please report it"
    )
    assert not report.lost


def test_a_rule_that_is_off_and_fixes_of_what_is_silenced_cost_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the words nor the fixes are worked out: they would raise here."""

    def never(*_: object) -> object:
        raise AssertionError

    monkeypatch.setattr(plans, "ways_out", never)
    silenced = TWO.replace("y += 1", "y += 1  # gradguard: ignore[GG101]")
    assert checked(silenced) == Report()
    (rule,) = (each for each in registry.rules() if each.code == "GG101")
    quiet = {
        kind: [replace(each, render=never) if each is rule else each for each in rules]
        for kind, rules in registry._by_event().items()
    }
    monkeypatch.setattr(registry, "_by_event", lambda: quiet)
    off = Settings(levels=(("GG101", Level.OFF),))
    assert check(Source("train.py", TWO), off) == Report()
    assert checked(TWO).faults


def test_rules_that_are_run_by_hand_raise_it(rule_fails: Exception) -> None:
    with pytest.raises(type(rule_fails)):
        registry.findings(run_tape(Source("train.py", TWO), table.load(), NO_FILES))


def test_a_comment_is_not_called_idle_where_its_finding_was_lost(rule_fails: Exception) -> None:
    assert lines(checked(TWO.replace("y += 1", "y += 1  # gradguard: ignore[GG101]"))) == []


def test_a_fault_in_the_engine_leaves_the_other_findings(engine_fails: None) -> None:
    report = checked(TWO + "def faulty(x):\n    return torch.erf(x)\n")
    assert lines(report) == [4, 8]
    assert [limit.span.line for limit in report.faults] == [10]
    assert report.crash.count("Traceback") == 1
    assert "secret" in report.crash
    assert "secret" not in report.faults[0].message
    assert not report.lost


def test_a_fault_before_anything_is_run_costs_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ValueError

    monkeypatch.setattr("gradguard.engine.driver.reuse.surroundings", broken)
    report = checked(TWO)
    assert (report.findings, report.lost) == ((), True)
    assert [limit.message for limit in report.faults] == [
        "not analysed: internal error ValueError in broken; please report it"
    ]


def test_faults_are_limits_like_any_other_but_for_their_traceback() -> None:
    limit = Limit("a.py", Span(1, 1, 1, 1), "too long")
    report = Report(limits=(limit,)).with_limits([limit, Limit("a.py", Span(2, 1, 2, 1), "m", "Traceback")])
    assert [each.plain()["internal_error"] for each in report.limits] == [False, True]
    assert report.crash == "Traceback"
    assert Report().with_limits([]) == Report()


def test_a_fault_in_one_function_lets_the_others_be_fixed(
    engine_fails: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source("train.py", TWO + "def faulty(x):\n    return torch.erf(x)\n")
    assert analysis(source, Settings(), EMPTY, analyse).whole
    monkeypatch.setattr("gradguard.engine.driver.reuse.surroundings", None)
    assert not analysis(source, Settings(), EMPTY, analyse).whole


def test_an_editor_gets_a_cold_answer_after_a_fault(engine_fails: None) -> None:
    faulty = "def faulty(x):\n    y = torch.rand(3, requires_grad=True).exp()\n    {}\n    y += 1\n    y.sum().backward()\n"
    before = None
    for word in ("torch.erf(x)", "torch.exp(x)", "torch.erf(x) ", "pass"):
        source = Source("train.py", TWO + faulty.format(word), before.source if before else None)
        before = analysis(source, Settings(), EMPTY, analyse, before)
        cold = check(Source("train.py", source.text), Settings())
        assert [each.span.line for each in before.findings] == lines(cold)
        assert before.limits == cold.limits
