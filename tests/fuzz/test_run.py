"""The command fails on each kind of program whose answers are not as asked, and on answers that do not come."""

from __future__ import annotations

from typing import Any

import pytest

from gradguard.findings import Severity
from tests.fuzz import kinds
from tests.fuzz.asked import Share
from tests.fuzz.compare import Case, Found
from tests.fuzz.cuts import CutCase
from tests.fuzz.kinds import BY_NAME, KINDS
from tests.fuzz.loop_programs import LoopProgram, loop_program
from tests.fuzz.loops import LoopCase
from tests.fuzz.needless import NeedlessCase
from tests.fuzz.reads import PASSES, ReadCase
from tests.fuzz.run import main, run
from tests.oracle.pool import Died

NONE: frozenset[int] = frozenset()
CODE = "x = 1\n"


def program(outcome: str, *found: Found, crash: str = "") -> Case:
    return Case(1, CODE, outcome, "GG101", "", 1, frozenset({1}), found, 0, crash)


def told(code: str, severity: Severity = Severity.ERROR, line: int = 1) -> Found:
    return Found(code, severity, line, line, "said")


def loop(used: bool, nodes: tuple[int, ...], *found: Found, crash: str = "") -> LoopCase:
    seed = next(seed for seed in range(99) if loop_program(seed).used is used)
    of: LoopProgram = loop_program(seed)
    return LoopCase(seed, of, "", nodes, (), found, crash)


def read(count: int, *found: Found, crash: str = "") -> ReadCase:
    return ReadCase(1, CODE, (1,), NONE, NONE, {1: count}, "", found, crash)


GROWING, STILL = tuple(range(30)), (5,) * 30

RIGHT: dict[str, Any] = {
    "programs": program("ok"),
    "loops": loop(True, STILL),
    "reads": read(0),
    "cuts": CutCase(1, CODE, 1, False, 0, "", (), ""),
    "needless": NeedlessCase(1, CODE, ""),
}
WRONG: dict[str, list[Any]] = {
    "programs": [
        program("ok", told("GG101")),
        program("ok", told("GG101", Severity.WARNING)),
        program("ok", crash="broken"),
        program("raises"),
        program("raises", told("GG101", line=2)),
        program("silent"),
    ],
    "loops": [
        loop(False, GROWING),
        loop(False, GROWING, told("GG201", Severity.WARNING, 9999)),
        loop(False, STILL, told("GG201", Severity.WARNING)),
        loop(True, STILL, told("GG201", Severity.WARNING)),
        loop(True, STILL, crash="broken"),
    ],
    "reads": [read(PASSES), read(0, told("GG301", Severity.INFORMATION)), read(0, crash="broken")],
    "cuts": [
        CutCase(1, CODE, 1, True, 2, "", (), ""),
        CutCase(1, CODE, 1, False, 0, "", (told("GG205"),), ""),
        CutCase(1, CODE, 1, False, 0, "", (), "broken"),
    ],
    "needless": [
        NeedlessCase(1, CODE, "", must=frozenset({1})),
        NeedlessCase(1, CODE, "", findings=(told("GG206", Severity.INFORMATION),)),
        NeedlessCase(1, CODE, "", crash="broken"),
        NeedlessCase(1, CODE, "raised before anything was seen"),
    ],
}
"""Answers of each kind that differ from torch, one of each sort."""


class Canned:
    """Answers every call for some kind with one case for each seed, others with what is right."""

    def __init__(self, cases: dict[str, Any]) -> None:
        self.cases = {kind.batch: cases.get(kind.name, RIGHT[kind.name]) for kind in KINDS}

    def call(self, function: str, *, timeout: float, **arguments: Any) -> Any:
        answer = self.cases[function]
        if isinstance(answer, (Died, RuntimeError)):
            if isinstance(answer, RuntimeError):
                raise answer
            return answer
        return [answer] * len(arguments["seeds"])


ALL = [part for kind in KINDS for part in (f"--{kind.name}", "3")]


def command(cases: dict[str, Any]) -> int:
    return main([*ALL, "--seed", "1", "--jobs", "1"], Canned(cases))


def test_answers_that_are_right_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    assert command({}) == 0
    assert "not as asked" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "number"), [(kind.name, number) for kind in KINDS for number in range(len(WRONG[kind.name]))]
)
def test_each_kind_fails_the_command(kind: str, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert command({kind: WRONG[kind][number]}) == 1
    assert "not as asked" in capsys.readouterr().out


@pytest.mark.parametrize("kind", BY_NAME)
@pytest.mark.parametrize("answer", [Died("timeout", "it hung"), RuntimeError("it broke")])
def test_answers_that_do_not_come_fail_the_command(
    kind: str, answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command({kind: answer}) == 1
    assert f"no answer for 3 {kind} from seed 1" in capsys.readouterr().out


def test_every_seed_is_asked_for_once() -> None:
    asked: list[int] = []

    class Noting(Canned):
        def call(self, function: str, *, timeout: float, **arguments: Any) -> Any:
            asked.extend(arguments["seeds"])
            return super().call(function, timeout=timeout, **arguments)

    kind = kinds.BY_NAME["reads"]
    assert len(run(kind, 40, 60, 1, Noting({})).cases) == 60
    assert asked == list(range(40, 100))


def test_a_share_is_met_up_to_what_is_asked() -> None:
    assert Share("missed", 5, 1000, 0.005).met
    assert not Share("missed", 6, 1000, 0.005).met
    assert Share("missed", 0, 0).met
    assert str(Share("missed", 6, 1000, 0.005)) == "missed: 6 of 1000 (0.60 %), at most 0.5 % asked"
