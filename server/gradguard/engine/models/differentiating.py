"""Functions that differentiate a function: `torch.func` and `torch.autograd.functional`.

What torch 2.13 does in reverse mode (`grad`, `vjp`, `jacrev`, `hessian`): the function is called with leaves that share
the memory of the inputs and require grad, and what its operations saved is checked when its result is differentiated, so
a write that `backward()` refuses is refused here. `jvp`, `jacfwd` and `vmap` go forward and check nothing.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gradguard.engine.autograd import machine
from gradguard.engine.autograd.backward import backward
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    DictV,
    Frame,
    ListV,
    NativeV,
    Sym,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe.lending import lend
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.run import Run

MODELS = Registry()


@MODELS.torch_function(
    "torch.func.grad", "torch.func.grad_and_value", "torch.func.jacrev", "torch.func.hessian"
)
def _transformed(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A function that differentiates the given one with respect to some of its arguments."""
    function, chosen = call.get(0, "func"), call.get(1, "argnums", 0)
    auxiliary = call.kwargs.get("has_aux") is True

    def derivative(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        wanted = _positions(chosen)
        if wanted is None:
            return run.fresh()
        return _differentiated(run, frame, function, call, node, wanted, auxiliary=auxiliary)

    return NativeV(derivative, call.name.rpartition(".")[2], (function,))


@MODELS.torch_function("torch.vmap", "torch.func.vmap", "torch.func.jvp", "torch.func.jacfwd")
def _forward_only(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """The values in it have levels of their own; what it returns is fresh."""
    function = call.get(0, "func")
    if not isinstance(function, NativeV) or not function.over:
        return NativeV(lambda run, frame, call, node: run.fresh(), "func")
    return NativeV(
        lambda run, frame, call, node: call_value(run, frame, function, call, node), "func", function.over
    )


@MODELS.torch_function("torch.func.vjp", "torch.func.linearize")
def _pulled_back(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """What it gives back differentiates through the arguments whenever it is called."""
    lend(run, (*call.args, *call.kwargs.values()))
    return run.fresh()


@MODELS.torch_function(
    *(f"torch.autograd.functional.{name}" for name in ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"))
)
def _functional(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`f(func, inputs, ...)`: also `jvp` goes backward, twice."""
    given = call.get(1, "inputs")
    inputs: list[Value] = [*given.items] if isinstance(given, TupleV) else [given]
    inner = Call(inputs, {}, call.place, [None] * len(inputs), {})
    return _differentiated(run, frame, call.get(0, "func"), inner, node, range(len(inputs)))


def _positions(chosen: Value) -> list[int] | None:
    """The arguments that are asked for; None where that is not known."""
    numbers = list(chosen.items) if isinstance(chosen, TupleV) else [chosen]
    found = [each for each in numbers if isinstance(each, int) and not isinstance(each, bool)]
    return found if len(found) == len(numbers) else None


def _differentiated(
    run: Run,
    frame: Frame,
    function: Value,
    call: Call,
    node: ast.AST,
    chosen: list[int] | range,
    *,
    auxiliary: bool = False,
) -> Value:
    """Call the function with leaves in the place of the chosen arguments, and differentiate what it returns."""
    leaves: list[Tensor] = []
    asked = {
        each % len(call.args) for each in chosen if call.args and -len(call.args) <= each < len(call.args)
    }
    args = [
        _leaves(run, value, call, leaves) if place in asked else value
        for place, value in enumerate(call.args)
    ]
    modes, run.modes = run.modes, replace(run.modes, grad=True, why_off=None)
    try:
        result = call_value(
            run, frame, function, Call(args, call.kwargs, call.place, call.exprs, call.kwexprs), node
        )
        if auxiliary and isinstance(result, TupleV) and result.items:
            result = result.items[0]
        roots = [root for root in tensors_in(result) if machine.requires_grad(run, root) is not False]
        if roots and leaves:
            backward(run, roots, call.place, retain=True, inputs=leaves, create=True, trains=False)
    finally:
        run.modes = modes
    return run.fresh()


def _leaves(run: Run, value: Value, call: Call, made: list[Tensor]) -> Value:
    """The same value with a leaf in the place of each tensor."""
    if isinstance(value, Sym) and value.tensor is not None:
        value = value.tensor
    if isinstance(value, Tensor):
        leaf = machine.share(run, value, call.place, "detach", counter=True)
        leaf.requires_grad, leaf.leaf = (None, None) if value.inference is not False else (True, True)
        leaf.bound_name = value.bound_name
        made.append(leaf)
        return leaf
    if isinstance(value, (TupleV, ListV)):
        items = [_leaves(run, item, call, made) for item in value.items]
        if isinstance(value, ListV):
            return ListV(items, open=value.open, made=call.place)
        return TupleV(tuple(items), value.names, value.open)
    if isinstance(value, DictV):
        pairs = {token: (key, _leaves(run, item, call, made)) for token, (key, item) in value.items.items()}
        return DictV(pairs, open=value.open, made=call.place)
    return value
