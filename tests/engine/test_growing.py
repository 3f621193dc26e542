"""Programs of kinds that once grew without bound stay within bounds: calls and memory, which no busy machine changes.

`python -m benchmarks --only bounds` measures the same programs in seconds.
"""

from __future__ import annotations

import ast

import pytest
from benchmarks.growing import PROGRAMS

from gradguard.engine.driver.wiring import PORTS
from gradguard.engine.state.path import FREE_OPS, OP_STEPS, BudgetExceeded, Oracle
from gradguard.engine.state.run import Run
from gradguard.ops import table
from tests.engine.analysing import NO_FILES
from tests.engine.bounded import Outcome, checked

pytest.importorskip("resource")

CALLS = 4_000_000
"""Calls of Python functions: about two seconds of a machine on which `ast.parse` takes 6 µs for a line."""
MEMORY = 450_000_000
"""Bytes of address space: the interpreter and the table of operations take a third of it."""
CUT = {
    "22 functions that each call the one before twice",
    "gradients of gradients, one after the other",
    "comprehensions inside comprehensions",
    "hooks on everything",
    "a thousand mistakes",
    "mistakes on one line",
    "one expression of many terms",
    "a script of 2,900 lines",
}
"""Of these the report says that something was cut; all others are read to their end."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """What was said of all of them, in one process that may not take more memory."""
    return checked(PROGRAMS, memory=MEMORY, counted=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_takes_more_calls_than_its_lines_let_it(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert found.crash == ""
    assert 0 < found.calls <= CALLS


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_cut_is_said(name: str, outcomes: dict[str, Outcome]) -> None:
    assert bool(outcomes[name].limits) is (name in CUT)


def test_the_programs_are_ones_that_an_editor_would_open() -> None:
    for text in PROGRAMS.values():
        ast.parse(text)
        assert text.count("\n") <= 3_000


def test_operations_count_where_a_path_has_very_many() -> None:
    """An operation takes as long as several nodes; so many of them are in no program that people write down."""
    run = Run(table.load(), Oracle(), [2 * OP_STEPS], NO_FILES, PORTS)
    for _ in range(FREE_OPS):
        run.operate()
    assert run.budget == [2 * OP_STEPS]
    run.operate()
    run.operate()
    assert run.budget == [0]
    with pytest.raises(BudgetExceeded):
        run.operate()
