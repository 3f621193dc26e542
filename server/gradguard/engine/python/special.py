"""Special methods of the workspace's own classes: what an operator or a statement calls on an object."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradguard.engine.dispatch.binding import Call
from gradguard.engine.domain.frame import Frame
from gradguard.engine.domain.values import Instance, Value
from gradguard.engine.python import attributes
from gradguard.engine.state.run import Run


def call_special(
    run: Run, frame: Frame, receiver: Value, name: str, args: Sequence[Value], node: ast.AST
) -> Value:
    """`type(receiver).name(receiver, *args)`; NotImplemented where its class has no such method."""
    if not isinstance(receiver, Instance):
        return NotImplemented
    method = attributes.class_lookup(receiver.cls, name)
    if method is None:
        return NotImplemented
    from gradguard.engine.python.calls import call_value

    call = Call(list(args), {}, run.place(frame, node), [None] * len(args), {})
    return call_value(run, frame, attributes.bind(run, receiver, method), call, node)
