"""Truth of abstract values, and the structural keys by which conditions are remembered."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from gradguard.engine.domain.frame import Frame
from gradguard.engine.domain.keys import root
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    GRAPHLESS,
    ArrayV,
    DictV,
    External,
    ListV,
    Sym,
    TupleV,
    Value,
    of_tuple,
)
from gradguard.engine.observe import reads
from gradguard.engine.state.run import Run

ASKED = "__asked__"
"""Fact of a condition: the tensor whose value it is."""


TRAINS = "__trains__"
"""Fact of a condition: the tensor, or the unknown value, that asks a gradient only where it holds, as `x.requires_grad`, `x.is_floating_point()`."""


def asks(value: Value) -> bool:
    """Whether a condition is the value of a tensor, which this path has chosen."""
    return isinstance(value, Tensor) or (isinstance(value, Sym) and ASKED in value.facts)


def key_of(value: Value) -> Hashable:
    """A key that is equal for values known to be equal."""
    if isinstance(value, Sym):
        return value.key
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, Tensor):
        return ("t", value.number, value.counter.value)
    if isinstance(value, TupleV):
        return of_tuple(value, key_of)
    return ("id", id(value))


def known_truth(value: Value) -> bool | None:
    """Truth without asking anybody; None when it depends."""
    if isinstance(value, External) and value.path in (
        "typing.TYPE_CHECKING",
        "typing_extensions.TYPE_CHECKING",
    ):
        return False
    if isinstance(value, (Sym, Tensor, ArrayV)):
        return None
    if isinstance(value, ListV):
        return True if value.items else (None if value.open else False)
    if isinstance(value, TupleV):
        return bool(value.items)
    if isinstance(value, DictV):
        return True if value.items else (None if value.open else False)
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return bool(value)
    return True


def _asks_none(value: Value) -> None:
    """This path has chosen that no gradient is asked for a value."""
    if isinstance(value, Sym) and value.tensor is None:
        value.facts[GRAPHLESS] = True
        return
    tensor: Tensor | None = value.tensor if isinstance(value, Sym) else value
    while tensor is not None:
        tensor.requires_grad = tensor.requires_grad is True
        tensor = tensor.base


def truth(run: Run, frame: Frame, value: Value, node: ast.AST, *, weak: bool = False) -> bool:
    """Which way a condition goes on this path."""
    known = known_truth(value)
    if known is not None:
        return known
    habit = node if run.loops else None
    if isinstance(value, Tensor):
        reads.host_read(run, frame, node, "bool", value, implicit=True)
        return run.oracle.decide(("bool", key_of(value)), weak=weak, habit=habit, at=node)
    if isinstance(value, Sym):
        if value.tensor is not None and value.kind == "tensor":
            reads.host_read(run, frame, node, "bool", value.tensor, implicit=True)
        answer = run.oracle.decide(value.key, weak=weak, habit=habit, at=node)
        if TRAINS in value.facts and answer is (root(value.key)[0] == "not"):
            _asks_none(value.facts[TRAINS])
        return answer
    return run.oracle.decide(("bool", key_of(value)), weak=weak, habit=habit, at=node)
