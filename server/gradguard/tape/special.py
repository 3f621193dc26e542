"""Special methods of the workspace's own classes: what an operator or a statement calls on an object."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradguard.tape import attributes
from gradguard.tape.binding import Call
from gradguard.tape.frame import Frame
from gradguard.tape.run import Run
from gradguard.tape.values import Instance, Value


def call_special(
    run: Run, frame: Frame, receiver: Value, name: str, args: Sequence[Value], node: ast.AST
) -> Value:
    """`type(receiver).name(receiver, *args)`; NotImplemented where its class has no such method."""
    if not isinstance(receiver, Instance):
        return NotImplemented
    method = attributes.class_lookup(receiver.cls, name)
    if method is None:
        return NotImplemented
    from gradguard.tape.calls import call_value

    call = Call(list(args), {}, run.place(frame, node), [None] * len(args), {})
    return call_value(run, frame, attributes.bind(run, receiver, method), call, node)
