"""Binding targets: names, attributes, items, and what is unpacked into several."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Frame, ListV, Sym, TupleV, Value
from gradguard.engine.python import attributes, subscripts
from gradguard.engine.python.iteration import MAX_RANGE, iterate
from gradguard.engine.python.names import assign_name
from gradguard.engine.state.coerce import are_sizes
from gradguard.engine.state.run import Run


def unpack_into(run: Run, frame: Frame, target: ast.expr, value: Value) -> None:
    """Assign to any target."""
    kind = type(target)
    if kind is ast.Name:
        assign_name(run, frame, target.id, value, target)  # type: ignore[attr-defined]
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, unpack(run, frame, value, target.elts, target), strict=False):
            unpack_into(run, frame, part, item)
    elif isinstance(target, ast.Attribute):
        owner = run.python.evaluate(run, frame, target.value)
        attributes.put(run, frame, owner, target.attr, value, target)
    elif isinstance(target, ast.Subscript):
        owner = run.python.evaluate(run, frame, target.value)
        index = run.python.evaluate(run, frame, target.slice)
        subscripts.put(run, frame, owner, index, value, target)
    elif isinstance(target, ast.Starred):
        unpack_into(run, frame, target.value, value)


def unpack(run: Run, frame: Frame, value: Value, targets: list[ast.expr], node: ast.AST) -> list[Value]:
    """As many values as there are targets."""
    if isinstance(value, Sym) and value.tensor is None:
        return [
            _part(run, value, index, isinstance(target, ast.Starred)) for index, target in enumerate(targets)
        ]
    if isinstance(value, Sym):
        value = value.tensor
    starred = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    if isinstance(value, Tensor):
        place = run.place(frame, node)
        call = Call([value], {}, place, [node], {})
        made = torchcalls.call_op(run, frame, "Tensor.unbind", call, node)
        items = list(made.items) if isinstance(made, TupleV) else []
        while len(items) < len(targets):
            items.append(machine.make_view(run, value, "unbind", place, multi=True))
    else:
        source = iterate(run, frame, value, node)
        items = []
        mark = run.pend(items)
        for item in source.source:
            items.append(item)
            if len(items) > MAX_RANGE or (
                starred is None and not source.exact and len(items) >= len(targets)
            ):
                break
        del run.pending[mark:]
        while len(items) < len(targets) - (starred is not None):
            items.append(_more(run, value, items, node, frame))
    if starred is None:
        return items
    after = len(targets) - starred - 1
    middle = items[starred : len(items) - after]
    return [*items[:starred], ListV(middle), *items[len(items) - after :]]


def _more(run: Run, value: Value, items: list[Value], node: ast.AST, frame: Frame) -> Value:
    """One more item of a tuple of unknown length, like the last known one."""
    last = items[-1] if items else None
    if isinstance(last, Tensor) and last.base is not None:
        return machine.make_view(run, last.base, last.view_op, run.place(frame, node), multi=last.multi)
    return run.fresh(data=isinstance(value, Sym) and value.data)


def _part(run: Run, value: Sym, index: int, starred: bool) -> Value:
    key = f"[{index}]"
    if key not in value.items:
        kind = "int" if are_sizes(value) else "any"
        part = Sym(Key(value.key, index), kind, data=value.data, text=value.text)
        value.items[key] = ListV(open=True) if starred else part
    return value.items[key]
