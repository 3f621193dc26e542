"""Where statements stand to each other in a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.model import Context
from gradguard.source.blocks import above, around, by_name, gathered, kept
from gradguard.source.loops import alone


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
    return next((one for one in above(tree, node)[1:] if isinstance(one, _FUNCTIONS)), None)


def may_be_plain(context: Context, node: ast.expr, place: Place) -> bool:
    """Whether a value may be a number or None: so is a running value before its loop, and what some branch gives."""
    tree = context.analysis.sources[place.path].tree
    if not isinstance(node, ast.Name):
        return _gives_plain(tree, node)
    scope = function_around(tree, node)
    if scope is not None:
        bound = kept(scope, "_gradguard_bound", _bound)
    else:
        bound = gathered(tree, "_gradguard_bound", _bound, by_name)
    # The same for each place that asks: it hangs on the whole tree, which lasts until the next edit.
    known: dict[int, bool] = kept(tree, "_gradguard_plain", lambda _: {})
    values = bound.get(node.id)
    if values is None:
        return False
    if id(values) not in known:
        known[id(values)] = any(_gives_plain(tree, value) for value in values)
    return known[id(values)]


def _bound(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What each name is bound to."""
    found: dict[str, list[ast.expr]] = {}
    for part in ast.walk(scope):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(part, ast.Assign):
            pairs = [pair for target in part.targets for pair in _pairs(target, part.value)]
        elif isinstance(part, (ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
            pairs = [*_pairs(part.target, part.value)]
        for name, value in pairs:
            found.setdefault(name, []).append(value)
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
    if depth == MAX_CALLS:
        return False
    returned = gathered(tree, "_gradguard_returned", _returns, by_name).get(name, ())
    return any(one is None or _gives_plain(tree, one, depth + 1) for one in returned)


_READS = frozenset({"item", "float", "int", "len"})
MAX_CALLS = 3
"""Functions that are looked into, one called by the other."""


def _returns(statement: ast.stmt) -> dict[str, list[ast.expr | None]]:
    """What the functions in a statement return, by their names."""
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
