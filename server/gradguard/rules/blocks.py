"""Where statements stand to each other in a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.rules.model import Context
from gradguard.source.blocks import around, kept, remembered
from gradguard.source.loops import alone
from gradguard.tape.domain import Place


def between(tree: ast.Module, first: ast.AST, second: ast.AST) -> tuple[list[ast.stmt], int, int] | None:
    """The block that holds both nodes in different statements of it, and which ones; None where there is none."""
    for (block, one), (other, two) in zip(around(tree, first), around(tree, second)):
        if block is not other:
            return None
        if one != two:
            return block, one, two
    return None


def function_around(tree: ast.Module, node: ast.AST) -> ast.AST | None:
    """The innermost function around a node; None at the top level."""
    statements = [block[index] for block, index in around(tree, node)]
    for statement in reversed(statements):
        for one in reversed(list(ast.walk(statement))):  # inner ones come later in a walk
            if (
                isinstance(one, _FUNCTIONS)
                and one is not node
                and any(part is node for part in ast.walk(one))
            ):
                return one
    return None


def may_be_plain(context: Context, node: ast.expr, place: Place) -> bool:
    """Whether a value may be a number or None: so is a running value before its loop, and what some branch gives."""
    tree = context.analysis.sources[place.path].tree
    if not isinstance(node, ast.Name):
        return _gives_plain(tree, node)
    scope = function_around(tree, node)
    if scope is not None:
        bound = kept(scope, "_gradguard_bound", _bound)
    else:
        bound = list(chain.from_iterable(remembered(tree, "_gradguard_bound", _bound)))
    return any(name == node.id and _gives_plain(tree, value) for name, value in bound)


def _bound(scope: ast.AST) -> list[tuple[str, ast.expr]]:
    """Each name that is bound, with what it is bound to."""
    found: list[tuple[str, ast.expr]] = []
    for part in ast.walk(scope):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                found += _pairs(target, part.value)
        elif isinstance(part, (ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
            found += _pairs(part.target, part.value)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, own in zip(target.elts, value.elts):
            yield from _pairs(one, own)
    if isinstance(target, ast.Name):
        yield target.id, value


def _gives_plain(tree: ast.Module, value: ast.expr, depth: int = 0) -> bool:
    """Whether a branch of an expression, or of a function of the file that it calls, is plain to the eye."""
    if isinstance(value, ast.UnaryOp):
        return _gives_plain(tree, value.operand, depth)
    if isinstance(value, ast.IfExp):
        return _gives_plain(tree, value.body, depth) or _gives_plain(tree, value.orelse, depth)
    if isinstance(value, ast.BoolOp):
        return True  # one operand or the other, as their truth has it
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Constant)
    name = ast.unparse(value.func).rpartition(".")[2]
    if name in _READS:
        return True
    if name in ("get", "pop", "getattr", "setdefault") and len(value.args) > 1:
        return _gives_plain(tree, value.args[-1], depth)
    returned = _returned(tree, name) if depth < MAX_CALLS else ()
    return any(one is None or _gives_plain(tree, one, depth + 1) for one in returned)


_READS = frozenset({"item", "float", "int", "len"})
MAX_CALLS = 3
"""Functions that are looked into, one called by the other."""


def _returned(tree: ast.Module, name: str) -> Iterator[ast.expr | None]:
    """What the functions of a file return that have this name."""
    for returned in remembered(tree, "_gradguard_returned", _returns):
        yield from returned.get(name, ())


def _returns(statement: ast.stmt) -> dict[str, list[ast.expr | None]]:
    found: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            returns = [part.value for part in ast.walk(node) if isinstance(part, ast.Return)]
            found.setdefault(node.name, []).extend(returns)
    return found


def after(context: Context, node: ast.AST, place: Place, goal: Place | None, title: str) -> list[FixPlan]:
    """A plan to move a statement behind the one of `goal`, where both stand in one block in this order."""
    if goal is None or goal.path != place.path:
        return []
    source = context.analysis.sources[place.path]
    moved, kept = around(source.tree, node), around(source.tree, goal.node)
    if not kept or not alone(source, *kept[-1]):
        return []
    while moved and moved[-1][0] is not kept[-1][0]:
        # A statement alone in a `with` moves together with it.
        inner = moved.pop()[0]
        if not moved or len(inner) != 1 or not isinstance(moved[-1][0][moved[-1][1]], ast.With):
            return []
    if not moved or moved[-1][1] >= kept[-1][1] or not alone(source, *moved[-1]):
        return []
    span = context.analysis.span(goal)
    where = spans_text(span)
    return context.plan("move-after", title, Applicability.UNSAFE, node, place, after=where)


def settled(context: Context, applicability: Applicability) -> Applicability:
    """An applicability that rests on what the whole program does: unsafe while torch stops it half way."""
    return Applicability.UNSAFE if context.events.stops or context.analysis.limits else applicability


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
