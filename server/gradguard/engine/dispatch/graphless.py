"""Unknown values through which no gradient goes if they are tensors, as their making tells: `x.long()`, `scores.argsort()`.

What they are stays open, so that nothing is sure of them. It only counts where one is asked for what a network computed by
convention, as of whatever else a `forward` gets.
"""

from __future__ import annotations

from gradguard.engine.autograd.machine import NOT_DIFFERENTIABLE
from gradguard.engine.dispatch.shapes import cast_target, dtype_of
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Sym, Value
from gradguard.engine.state.run import Run
from gradguard.ops.model import ALWAYS, AliasKind, Op


def mark(made: Sym, graphless: bool) -> Sym:
    """The value, and whether that is known of it."""
    made.graphless = made.graphless or graphless
    return made


def known(*values: Value) -> bool:
    """Whether what is computed from these and nothing else takes no gradient from any of them."""
    return all(_known(value) for value in values)


def by_method(run: Run, owner: Sym, name: str, call: Call) -> bool:
    """Whether a tensor's method of that name gives what no gradient goes through, if `owner` is one."""
    if name in _CONVERTS:
        target = dtype_of(call.kwargs.get("dtype", call.args[0] if call.args else None))
    else:
        target = cast_target(name)
    if target in NOT_DIFFERENTIABLE:
        return True
    op = run.table.op(f"Tensor.{name}")
    if op is None:
        return False
    if _keeps_none(op):
        return True
    return _known(owner) and (_from_itself(op) or known(*call.args, *call.kwargs.values()))


_CONVERTS = frozenset({"to", "type"})


def _known(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad is False
    if isinstance(value, Sym):
        return value.graphless or value.data or value.kind in _PLAIN
    return isinstance(value, (bool, int, float))


_PLAIN = frozenset({"int", "index", "number", "bool", "device", "dtype"})


def _keeps_none(op: Op) -> bool:
    """Whether no result of the op has a graph; one that is an argument has that of the argument."""
    return all(
        form.results
        and not form.differentiable
        and not any(alias.kind is AliasKind.SAME and alias.when == ALWAYS for alias in form.aliases)
        for form in op.forms
    )


def _from_itself(op: Op) -> bool:
    """Whether gradients only ever go to the tensor whose method it is."""
    return all(set(form.differentiable) <= {form.params[0].name} for form in op.forms if form.params)
