"""What an editor shows of a file, and what fixes do to it, takes time that grows with its findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gradguard.check.api import Report
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Related, Severity, Span
from gradguard.ide import actions, fixall
from gradguard.ide import edits as edits_module
from gradguard.ide.analysis import Analyser, Outcome, analysis
from gradguard.ide.wording import Wording
from gradguard.source.text import Source
from tests.counting import LINEAR, growth

KOREAN = Wording("ko")


def finding(line: int, related: int = 0) -> Finding:
    span = Span(line, 1, line, 10)
    plan = FixPlan("out-of-place", "Write `y` out of place", Applicability.SAFE, span, (("name", "y"),))
    return Finding(
        "train.py",
        span,
        "GG101",
        "inplace-on-saved-tensor",
        Severity.ERROR,
        Certainty.CERTAIN if line % 2 else Certainty.POSSIBLE,
        "`y` is changed",
        tuple(Related("train.py", Span(at + 1, 1, at + 1, 5), "saved here") for at in range(related)),
        (plan,),
    )


def always(findings: tuple[Finding, ...]) -> Analyser:
    return lambda *_: Outcome(Report(findings))


def source(count: int, line: str = "y.add_(1)\n") -> Source:
    return Source("train.py", "import torch\n" + line * count)


def many(count: int) -> tuple[Finding, ...]:
    return tuple(finding(line) for line in range(2, count + 2))


def test_an_answer() -> None:
    def answered(count: int) -> Callable[[], object]:
        text, found = source(count), many(count)
        return lambda: analysis(text, Settings(), EMPTY, always(found))

    assert growth(answered, 100) < LINEAR


def test_an_answer_for_a_text_of_many_broken_pieces() -> None:
    def answered(count: int) -> Callable[[], object]:
        found = tuple(finding(line) for line in range(2, 2 * count, 2))
        before = analysis(source(count), Settings(), EMPTY, always(found))
        broken = source(count, "y.add_(1)\n)\n")
        assert broken.errors
        return lambda: analysis(broken, Settings(), EMPTY, always(found), before)

    assert growth(answered, 60) < LINEAR


@pytest.mark.parametrize("made", [many, lambda count: (finding(2, related=count),)])
def test_what_can_be_done(made: Callable[[int], tuple[Finding, ...]]) -> None:
    def offered(count: int) -> Callable[[], object]:
        found = made(count)
        answer = analysis(source(count), Settings(), EMPTY, always(found))
        return lambda: [
            actions.changes(offer, answer, [])
            for offer in actions.offers(answer, found, Span(1, 1, count + 2, 1), KOREAN)
            if offer.what is actions.What.IGNORE
        ]

    offered(2)()
    assert growth(offered, 100) < LINEAR


def repairing(text: Source) -> Report:
    """A finding for each line that is still to be repaired."""
    lines = (line for line in range(1, text.lines.count + 1) if "add_" in text.line(line))
    return Report(tuple(finding(line) for line in lines))


def test_fixing_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits_module, "edits_of", lambda plan, source, faults: ((plan.span, "y = y + 1"),))

    def fixed(count: int) -> Callable[[], object]:
        text = source(count)
        return lambda: fixall.fixed(text, repairing(text), repairing)

    assert growth(fixed, 100) < LINEAR
    done = fixall.fixed(source(9), repairing(source(9)), repairing)
    assert (done.source.text, done.rounds) == (source(9, "y = y + 1\n").text, 1)


def test_one_fix_that_spoils_all_costs_few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A half without it is made, then a half of the rest, and so on."""
    checks = []

    def edits(plan: FixPlan, source: Source, faults: object) -> edits_module.Edits:
        return ((plan.span, "y.add_(1) # left" if plan.span.line == 77 else "y = y + 1"),)

    def check(text: Source) -> Report:
        checks.append(text)
        report = repairing(text)
        return Report(report.findings * (2 if "left" in text.text else 1))

    monkeypatch.setattr(edits_module, "edits_of", edits)
    text = source(500)
    done = fixall.fixed(text, check(text), check)
    assert done.source.text.count("add_") < 5
    assert len(checks) < 200


def test_where_nothing_helps_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    monkeypatch.setattr(edits_module, "edits_of", lambda plan, source, faults: ((plan.span, "y.add_(2)"),))

    def check(text: Source) -> Report:
        checks.append(text)
        return repairing(text)

    text = source(500)
    assert fixall.fixed(text, check(text), check).source.text == text.text
    assert len(checks) < 150


@pytest.mark.parametrize(
    ("one", "other", "touch"),
    [
        (Span(1, 1, 1, 5), Span(1, 5, 1, 9), True),
        (Span(1, 1, 1, 5), Span(1, 6, 1, 9), False),
        (Span(1, 5, 1, 5), Span(1, 5, 1, 5), False),
        (Span(1, 5, 1, 5), Span(1, 1, 1, 5), True),
        (Span(1, 1, 3, 1), Span(2, 1, 2, 9), True),
        (Span(1, 1, 3, 1), Span(3, 2, 3, 9), False),
    ],
)
def test_fixes_that_touch_are_told_apart(one: Span, other: Span, touch: bool) -> None:
    for first, second in ((one, other), (other, one)):
        taken = fixall._Taken()
        taken.add([Span(0, 1, 0, 2), first, Span(9, 1, 9, 2)])
        assert taken.touches(second) is touch
    taken = fixall._Taken()
    taken.add([Span(1, 5, 1, 5), Span(1, 5, 1, 9)])
    assert taken.touches(Span(1, 5, 1, 5))


def test_fixes_are_written_up_to_a_bound_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits_module, "MOST_TEXT", 10_000)
    monkeypatch.setattr(edits_module, "edits_of", lambda plan, source, faults: ((plan.span, "y = y + 1"),))
    text = source(500)
    writer = edits_module.Writer()
    written = [writer.edits(found.fixes[0], text) for found in many(500)]
    assert 20 < sum(each is not None for each in written) < 40
    (limit,) = writer.limits
    assert limit.message == "fixes are written in part: there are too many, or they are in lines too long"
    assert not limit.fault
    long = Source("train.py", "import torch\n" + "y.add_(1); " * 5000)
    writer = edits_module.Writer()
    assert writer.edits(replace(finding(2).fixes[0], span=Span(2, 1, 2, 10)), long) is None
