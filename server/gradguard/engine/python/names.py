"""Binding a name, and who is told of it."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import DictV, Frame, ListV, Sym, TupleV, Value, tensors_in
from gradguard.engine.observe import lifetime, reads
from gradguard.engine.state.run import Run


def assign_name(run: Run, frame: Frame, name: str, value: Value, node: ast.AST) -> None:
    """Bind a name; tensors remember where they were last bound, for messages."""
    home = frame.outer_names.get(name, frame)
    if isinstance(value, Tensor) and home.variables.get(name) is value:
        # `h -= 1` on a tensor gives the name the same tensor again: nothing new is bound.
        return
    old = home.variables.get(name)
    home.variables[name] = value
    run.trail.put(name if home is frame else ".", old, value)
    if run.loops and old is not None:
        lifetime.replaced(run, frame, old, value)
    if isinstance(value, Tensor):
        machine.bound(run, value, run.place(frame, run.statement or node), name)
        if value.grad_owner is not None:
            run.named_grads[value.number] = run.place(frame, run.statement or node)
    elif isinstance(value, Sym):
        reads.named(value.reading)
        if not value.text:
            value.text = name
        if value.tensor is not None:
            machine.bound(run, value.tensor, run.place(frame, run.statement or node), name)
    if run.loops and isinstance(value, (ListV, TupleV, DictV)):
        run.weigh((value, old))
        before = {t.number for t in tensors_in(old)} if type(old) is type(value) else None
        inside = tensors_in(value)
        # `losses = losses + [loss]`: what the statement adds is stored by it, wherever it was before.
        grown = before is not None and old is not value and before <= {t.number for t in inside}
        for tensor in inside:
            added = tensor.stored_at is None or (grown and before and tensor.number not in before)
            if added and tensor.node is not None:
                place = run.place(frame, run.statement or node)
                machine.stored(run, tensor, place, name, inside=True)
    if isinstance(value, TupleV):
        for item in value.items:
            if isinstance(item, Tensor) and item.bound_at is None:
                machine.bound(run, item, run.place(frame, run.statement or node), name)
            elif isinstance(item, Tensor) and run.loops:
                # What a loop carries over is carried by this name, whatever a function called its parts.
                machine.bind_again(run, item, run.place(frame, run.statement or node), name)
