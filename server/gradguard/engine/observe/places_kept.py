"""Where a statement puts what it keeps, as its text tells: which container, and whether a loop empties or renews it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.engine.domain.loops import Loop
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk


def emptied(loop: ast.AST) -> frozenset[str | None]:
    """The containers, see `container_of`, out of which the body of a loop takes items."""
    known: frozenset[str | None] | None = getattr(loop, "_gradguard_emptied", None)
    if known is None:
        known = loop._gradguard_emptied = frozenset(ast.dump(one) for one in _taken_from(loop))  # type: ignore[attr-defined]
    return known


def _taken_from(loop: ast.AST) -> Iterator[ast.expr]:
    for node in walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKERS:
            yield node.func.value
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            if isinstance(node.value.slice, ast.Slice):
                yield node.value.value
        elif isinstance(node, ast.Delete):
            yield from (target.value for target in node.targets if isinstance(target, ast.Subscript))


_TAKERS = frozenset({"pop", "popleft", "popitem", "clear", "remove"})


def container_of(statement: ast.AST) -> str | None:
    """What a statement puts an item into."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return ast.dump(function.value) if isinstance(function, ast.Attribute) else None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return ast.dump(statement.targets[0].value)
    return None


MANY = 100
"""Passes from which on a loop of known length is no plot, test or demonstration."""


def many(loop: Loop) -> bool:
    return not loop.exact or loop.length >= MANY or loop.kind == "while"


def begins_anew(run: Run, loop: Loop, statement: ast.AST) -> bool:
    """Whether a loop around binds anew, outside of this loop, what the statement adds to: `total = 0` in each epoch."""
    target: ast.expr | None = statement.target if isinstance(statement, ast.AugAssign) else None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    kept = ast.dump(target).replace("Store()", "Load()") if target is not None else container_of(statement)
    return any(kept in _bound_around(outer.place.node, loop.place.node) for outer in run.loops)


def _bound_around(outer: ast.AST, inner: ast.AST) -> set[str]:
    """What the body of a loop binds outside of a loop in it."""
    found: set[str] = set()
    waiting = list(ast.iter_child_nodes(outer))
    while waiting:
        node = waiting.pop()
        if node is inner:
            continue
        if isinstance(node, ast.Assign):
            found.update(ast.dump(target).replace("Store()", "Load()") for target in _targets(node))
        waiting += ast.iter_child_nodes(node)
    return found


def _targets(node: ast.Assign) -> Iterator[ast.expr]:
    for target in node.targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)
