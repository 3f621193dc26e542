"""Where statements stand to each other in a file."""

from __future__ import annotations

import ast

from gradguard.findings import Applicability, FixPlan
from gradguard.rules.model import Context
from gradguard.source.blocks import around
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


def after(context: Context, node: ast.AST, place: Place, goal: Place | None, title: str) -> list[FixPlan]:
    """A plan to move a statement behind the one of `goal`, where both stand in one block in this order."""
    if goal is None or goal.path != place.path:
        return []
    found = between(context.analysis.sources[place.path].tree, node, goal.node)
    if found is None or found[1] > found[2]:
        return []
    block, first, last = found
    if isinstance(block[first], _DEFINITIONS) or isinstance(block[last], _DEFINITIONS):
        return []  # they stand in different functions
    span = context.analysis.span(goal)
    where = f"{span.line}:{span.column}:{span.end_line}:{span.end_column}"
    return context.plan("move-after", title, Applicability.UNSAFE, node, place, after=where)


def settled(context: Context, applicability: Applicability) -> Applicability:
    """An applicability that rests on what the whole program does: unsafe while torch stops it half way."""
    return Applicability.UNSAFE if context.events.stops or context.analysis.limits else applicability


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
