"""Ops that read and write the same memory: torch refuses them where it can tell that elements are shared.

Written after `at::get_overlap_status`: it compares where the two tensors begin and end, and only if both are dense.
What it cannot tell that way (a row of a column, an expanded row) it lets pass.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradguard.engine.autograd import sizes
from gradguard.engine.autograd.sizes import known
from gradguard.engine.domain import strides
from gradguard.engine.domain.events import RefusedWrite, WriteFact
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.state.run import Run
from gradguard.ops.model import Op

NO_SHARING = frozenset({
    "index_add_", "index_copy_", "index_put_", "index_reduce_", "put_", "scatter_", "scatter_add_", "scatter_reduce_",
})  # fmt: skip
"""Ops that do not even take the very tensor they write, as seen for every in-place method of torch 2.13."""

_UNASKED = frozenset({"ldexp_", "masked_scatter_"})
"""Element by element, but made of other ops or without the question."""


@dataclass(frozen=True, slots=True)
class Operands:
    """What one op writes and reads."""

    target: Tensor
    read: tuple[tuple[Tensor, ast.AST | None], ...]
    """Each tensor that is read, with the expression that gives it."""
    sharing: bool = True
    """The op takes a source that lies exactly where its target does."""


def asks(op: Op) -> bool:
    """Whether an in-place op asks if what it reads lies in what it writes."""
    name = op.name.rpartition(".")[2]
    if name in NO_SHARING or name == "copy_" or name.startswith("__i"):
        return True
    return sizes.pointwise(op) and name not in _UNASKED


def clashes(run: Run, operands: Operands, fact: WriteFact, *, certain: bool) -> bool:
    """Whether torch refuses a write because of what it reads; emits the refusal."""
    target = operands.target
    for source, expr in operands.read:
        found = _shared(target, source)
        if found == "partly" or (found == "wholly" and not operands.sharing):
            at = Place(fact.place.path, expr) if expr is not None else source.created
            sure = certain and target.alias_sure and source.alias_sure and target.sure and source.sure
            run.emit(RefusedWrite(fact.place, sure, "overlap", fact, at))
            return True
    return False


def _shared(target: Tensor, source: Tensor) -> str:
    """`wholly`, `partly`, or empty where nothing is shared or torch cannot tell."""
    if source.memory is not target.memory:
        return ""
    if source is target:
        return "wholly"
    if source.dtype != target.dtype:
        # Its offset counts elements of another size.
        return ""
    first, second = _extent(target), _extent(source)
    if first is None or second is None:
        return ""
    if first == second:
        if target.strides == source.strides:
            return "wholly"
        # What torch notes for a dimension of one element is not followed.
        return "" if _moving(target) == _moving(source) else "partly"
    return "partly" if first[0] < second[1] and second[0] < first[1] else ""


def _extent(tensor: Tensor) -> tuple[int, int] | None:
    """First element and the one behind the last, of a dense tensor; None where it is not dense, empty or not known."""
    shape, steps = known(tensor), tensor.strides
    if (
        shape is None
        or steps is None
        or tensor.offset is None
        or 0 in shape
        or not strides.is_dense(shape, steps)
    ):
        return None
    count = 1
    for size in shape:
        count *= size
    return tensor.offset, tensor.offset + count


def _moving(tensor: Tensor) -> list[int]:
    """Strides of the dimensions with more than one element."""
    shape = known(tensor) or ()
    return [step for size, step in zip(shape, tensor.strides or (), strict=True) if size != 1]
