"""Binding a name: where it is bound, and what a tensor remembers of its names."""

from __future__ import annotations

import ast

import pytest

from gradguard.engine.domain.values import Frame, Namespace
from gradguard.engine.python.names import assign_name
from gradguard.engine.state.run import Run
from tests.engine.rooms import leaf, new_run

FIRST, SECOND = ast.parse("a = x\nb = a\n").body


@pytest.fixture
def run() -> Run:
    return new_run()


@pytest.fixture
def frame() -> Frame:
    return Frame(Namespace("program.py", "program"), {})


def test_a_tensor_remembers_its_latest_name_and_all_statements(run: Run, frame: Frame) -> None:
    tensor = leaf(run)
    assign_name(run, frame, "a", tensor, FIRST)
    assign_name(run, frame, "b", tensor, SECOND)
    assert frame.variables == {"a": tensor, "b": tensor}
    assert (tensor.bound_name, tensor.bound_at and tensor.bound_at.line) == ("b", 2)
    assert [(name, place.line) for _, place, name in tensor.bindings] == [("a", 1), ("b", 2)]


def test_the_name_that_a_tensor_has_already_is_not_bound_anew(run: Run, frame: Frame) -> None:
    """`a += 1` binds the tensor that it has written; the place of its first binding stays."""
    tensor = leaf(run)
    assign_name(run, frame, "a", tensor, FIRST)
    assign_name(run, frame, "a", tensor, SECOND)
    assert [place.line for _, place, _ in tensor.bindings] == [1]


def test_a_name_that_is_declared_global_is_bound_outside(run: Run, frame: Frame) -> None:
    inner = Frame(frame.namespace, {}, parent=frame, outer_names={"a": frame})
    assign_name(run, inner, "a", 1, FIRST)
    assign_name(run, inner, "b", 2, SECOND)
    assert (frame.variables, inner.variables) == ({"a": 1}, {"b": 2})


def test_an_unknown_value_is_spelled_as_its_first_name(run: Run, frame: Frame) -> None:
    unknown = run.fresh()
    assign_name(run, frame, "first", unknown, FIRST)
    assign_name(run, frame, "second", unknown, SECOND)
    assert unknown.text == "first"
