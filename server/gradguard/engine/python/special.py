"""Special methods of classes: what an operator or a statement calls on an object."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import MISSING, Frame, Instance, Value
from gradguard.engine.state.run import Run


def call_special(
    run: Run, frame: Frame, receiver: Value, name: str, args: Sequence[Value], node: ast.AST
) -> Value:
    """`type(receiver).name(receiver, *args)`; MISSING where neither its class nor a model of it has such a method."""
    if not isinstance(receiver, Instance):
        return MISSING
    method = classes.class_lookup(receiver.cls, name)
    if method is None:
        return run.models.special(run, frame, receiver, name, args, node)
    call = Call(list(args), {}, run.place(frame, node), [None] * len(args), {})
    return run.python.call(run, frame, classes.bind(receiver, method), call, node)
