"""An operation of the table acts on the machine: it records a node, saves what its row says, and writes."""

from __future__ import annotations

import pytest

from gradguard.engine.dispatch.apply import apply
from gradguard.engine.dispatch.binding import choose
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.events import RefusedWrite
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Value
from gradguard.engine.state.run import Run
from tests.engine.rooms import PLACE, leaf, new_run


def applied(run: Run, name: str, *values: Value) -> Value:
    """What an operation gives for these arguments."""
    op = run.table.op(name)
    assert op is not None
    chosen = choose(run, op, Call([*values], {}, PLACE, [None] * len(values), {}))
    assert chosen is not None
    return apply(run, op, *chosen, PLACE)


@pytest.mark.parametrize(("name", "role"), [("torch.sigmoid", "result"), ("torch.sin", "input")])
def test_a_node_keeps_what_the_row_says(name: str, role: str) -> None:
    run = new_run()
    y = applied(run, name, x := leaf(run))
    assert isinstance(y, Tensor)
    assert y.node is run.nodes[0]
    assert [(edge.tensor, edge.node) for edge in run.nodes[0].edges] == [(x, None)]
    assert [(kept.role, kept.version) for kept in run.nodes[0].saved] == [(role, 0)]
    assert run.nodes[0].saved[0].tensor is {"result": y, "input": x}[role]


def test_nothing_is_recorded_where_nothing_requires_grad() -> None:
    run = new_run()
    applied(run, "torch.sigmoid", leaf(run, requires_grad=False))
    run.modes.grad = False
    applied(run, "torch.sigmoid", leaf(run))
    assert run.nodes == []


def test_a_write_counts_and_gives_the_tensor_a_new_history() -> None:
    run = new_run()
    y = applied(run, "torch.sigmoid", leaf(run))
    assert isinstance(y, Tensor)
    assert applied(run, "Tensor.add_", y, 1) is y
    assert (y.counter.value, len(y.memory.writes)) == (1, 1)
    first, second = run.nodes
    assert y.node is second
    assert [edge.node for edge in second.edges] == [first]


def test_a_leaf_refuses_the_write() -> None:
    run = new_run()
    applied(run, "Tensor.add_", x := leaf(run), 1)
    assert [event.reason for event in run.events if isinstance(event, RefusedWrite)] == ["leaf"]
    assert (x.counter.value, run.nodes) == (0, [])
