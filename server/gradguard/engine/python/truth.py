"""Truth of abstract values, and the structural keys by which conditions are remembered."""

from __future__ import annotations

import ast

from gradguard.engine.domain.conditions import key_of, known_truth
from gradguard.engine.domain.keys import root
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    Frame,
    Sym,
    Value,
)
from gradguard.engine.observe import reads
from gradguard.engine.state.run import Run


def _asks_none(value: Value) -> None:
    """This path has chosen that no gradient is asked for a value."""
    if isinstance(value, Sym) and value.tensor is None:
        value.graphless = True
        return
    tensor = value.tensor if isinstance(value, Sym) else value if isinstance(value, Tensor) else None
    while tensor is not None:
        tensor.requires_grad = tensor.requires_grad is True
        tensor = tensor.base


def truth(run: Run, frame: Frame, value: Value, node: ast.AST, *, weak: bool = False) -> bool:
    """Which way a condition goes on this path."""
    known = known_truth(value)
    if known is not None:
        return known
    habit = node if run.loops else None
    leaning = run.oracle.leaning
    if isinstance(value, Tensor):
        reads.host_read(run, frame, node, "bool", value, implicit=True)
        return run.oracle.decide(("bool", key_of(value)), leaning, weak=weak, habit=habit, at=node)
    if isinstance(value, Sym):
        if value.tensor is not None and value.kind == "tensor":
            reads.host_read(run, frame, node, "bool", value.tensor, implicit=True)
        answer = run.oracle.decide(value.key, leaning, weak=weak, habit=habit, at=node)
        run.trail.touched += value.trains is not None
        if value.trains is not None and answer is (root(value.key)[0] == "not"):
            _asks_none(value.trains)
        return answer
    return run.oracle.decide(("bool", key_of(value)), leaning, weak=weak, habit=habit, at=node)
