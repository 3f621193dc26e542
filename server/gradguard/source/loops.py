"""Statements of a loop and what may be done with them: skipped on most passes, read once behind it, collected."""

from __future__ import annotations

import ast

from gradguard.findings import Span
from gradguard.source.blocks import Block, way_down
from gradguard.source.text import Source

Loop = ast.For | ast.While
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TRAINS = frozenset({"step", "backward", "zero_grad"})
"""Methods that a training loop does not do without on most of its passes."""
_GIVES = (ast.NamedExpr, ast.Yield, ast.YieldFrom)
"""What hands a value on from within an expression: `print(n := loss.item())`, `yield loss.item()`."""
_MAKERS = ("zeros", "empty", "ones", "full", "zeros_like", "empty_like")


def holding(source: Source, span: Span) -> list[tuple[Block, int]]:
    """Each block that holds a stretch, from the outside in, with the index of the statement it is in or is."""
    return way_down(
        source.tree, span.line, span.end_line, lambda statement: source.span(statement).holds(span)
    )


def loop_around(source: Source, span: Span) -> Loop | None:
    """The innermost loop on every pass of which a statement runs; None across the bounds of a function."""
    path = [block[index] for block, index in holding(source, span)]
    for outer, inner in zip(reversed(path[:-1]), reversed(path[1:])):
        if isinstance(outer, _DEFINITIONS):
            return None
        if isinstance(outer, (ast.For, ast.While)) and any(inner is one for one in outer.body):
            return outer
    return None


def alone(source: Source, block: Block, index: int) -> bool:
    """Whether a statement has its lines for itself: no other shares them, and it is no suite behind a colon."""
    one = block[index]
    first, last = one.lineno, one.end_lineno or one.lineno
    if index and (block[index - 1].end_lineno or 0) >= first:
        return False
    if index + 1 < len(block) and block[index + 1].lineno <= last:
        return False
    return not source.line(first)[: source.span(one).column - 1].strip(" \t\f\ufeff")


def counter(loop: Loop) -> str | None:
    """The name that counts a loop's passes: of `enumerate` or `range`."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    name = ast.unparse(loop.iter.func)
    target = loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        return target.elts[0].id
    return target.id if name in ("range", "trange") and isinstance(target, ast.Name) else None


def read_behind(source: Source, span: Span) -> tuple[Loop, ast.Call] | None:
    """The loop that a statement sums or lists numbers in, and its one `.item()`; None where that must stay in it.

    `total += loss.item()`; `losses.append(loss.item())` where the list is new before the loop.
    """
    path = holding(source, span)
    loop = loop_around(source, span)
    if loop is None:
        return None
    statement = path[-1][0][path[-1][1]]
    reads = [part for part in ast.walk(statement) if isinstance(part, ast.Call) and _is_item(part)]
    if len(reads) != 1:
        return None
    if isinstance(statement, ast.AugAssign):
        added = isinstance(statement.op, ast.Add) and isinstance(statement.target, (ast.Name, ast.Attribute))
        return (loop, reads[0]) if added else None
    if not isinstance(statement, ast.Expr) or not _appends(statement.value, reads[0]):
        return None
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    block, index = next((block, index) for block, index in path if block[index] is loop)
    name = ast.unparse(statement.value.func.value)
    # What a list holds from before, or from elsewhere, may be anything but tensors.
    new = any(_binds_an_empty_list(one, name) for one in block[:index])
    kind = type(statement.value.func.value)
    users = sum(isinstance(part, kind) and ast.unparse(part) == name for part in ast.walk(loop))
    return (loop, reads[0]) if new and users == 1 else None


def _is_item(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args


def _appends(value: ast.expr, read: ast.Call) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "append"
        and len(value.args) == 1
        and value.args[0] is read
    )


def _binds_an_empty_list(statement: ast.stmt, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    pairs = [(target, value) for target in targets]
    if isinstance(value, ast.Tuple):  # `total, losses = 0, []`
        pairs = [
            pair
            for target in targets
            if isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts)
            for pair in zip(target.elts, value.elts)
        ]
    return any(isinstance(v, ast.List) and not v.elts and ast.unparse(t) == name for t, v in pairs)


def guardable(source: Source, span: Span) -> tuple[str, list[ast.stmt]] | None:
    """The name that counts the passes, and the statements that may be skipped on most of them, in a row.

    The one at the span, with the later ones that need what it binds; None where not all of them only report.
    """
    path = holding(source, span)
    loop = loop_around(source, span)
    step = counter(loop) if loop is not None else None
    if loop is None or step is None or path[-1][0] is not loop.body:
        return None
    index = path[-1][1]
    chosen = _skipped(loop.body, index)
    if not chosen or not all(alone(source, loop.body, index + at) for at in range(len(chosen))):
        return None
    if not all(map(_reports, chosen)):
        return None
    return step, chosen


def _skipped(body: Block, index: int) -> Block:
    statement = body[index]
    if isinstance(statement, ast.Expr):
        return [statement]
    if not isinstance(statement, ast.Assign) or not all(isinstance(t, ast.Name) for t in statement.targets):
        return []
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    users = [
        i for i, one in enumerate(body) if i != index and any(_loads(part, names) for part in ast.walk(one))
    ]
    if any(i < index for i in users):
        return []
    chosen = body[index : max([index, *users]) + 1]
    return chosen if all(isinstance(one, ast.Expr) for one in chosen[1:]) else []


def _reports(statement: ast.stmt) -> bool:
    """Whether a statement may be left out without another course of training, as far as its names say."""
    if any(isinstance(part, _GIVES) for part in ast.walk(statement)):
        return False
    calls = [part.func for part in ast.walk(statement) if isinstance(part, ast.Call)]
    methods = [func.attr for func in calls if isinstance(func, ast.Attribute)]
    return not any(name in _TRAINS or (name.endswith("_") and not name.startswith("_")) for name in methods)


def _loads(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)


def fills_rows(loop: ast.For, name: str, made: ast.expr) -> bool:
    """Whether a new tensor is written row by row, in order and from the first, once on every pass."""
    if not isinstance(made, ast.Call) or ast.unparse(made.func).rpartition(".")[2] not in _MAKERS:
        return False
    head = ast.unparse(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
    arguments = len(loop.iter.args) if isinstance(loop.iter, ast.Call) else 0
    target = loop.target
    if head == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif head != "range":
        return False
    if not isinstance(target, ast.Name) or arguments != 1 or loop.orelse:
        return False
    writes = [
        one
        for one in loop.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == f"{name}[{target.id}]"
    ]
    uses = [part for part in ast.walk(loop) if isinstance(part, ast.Name) and part.id == name]
    reads = [
        part
        for part in ast.walk(loop)
        if isinstance(part, ast.Subscript)
        and ast.unparse(part.value) == name
        and isinstance(part.ctx, ast.Load)
    ]
    leaves = any(isinstance(part, (ast.Break, ast.Continue)) for part in ast.walk(loop))
    return len(writes) == 1 and len(uses) == 1 + len(reads) and not leaves
