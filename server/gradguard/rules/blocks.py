"""Where statements stand to each other in a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.findings import Applicability, FixPlan
from gradguard.rules.model import Context
from gradguard.tape.domain import Place
from gradguard.tape.events import InferenceSaved, RefusedWrite, SavedTensorMutated, SecondBackward


def between(tree: ast.Module, first: ast.AST, second: ast.AST) -> tuple[list[ast.stmt], int, int] | None:
    """The block that holds both nodes in different statements of it, and which ones; None where there is none."""
    for block in blocks(tree):
        at = [index for node in (first, second) for index, one in enumerate(block) if _inside(node, one)]
        if len(at) == 2 and at[0] != at[1]:
            return block, at[0], at[1]
    return None


def function_around(tree: ast.Module, node: ast.AST) -> ast.AST | None:
    """The innermost function around a node; None at the top level."""
    found: ast.AST | None = None
    for one in ast.walk(tree):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and one is not node:
            if _inside(node, one):
                found = one
    return found


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every block of statements."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


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
    stops = any(isinstance(event, _STOPS) for event in context.analysis.events)
    return Applicability.UNSAFE if stops or context.analysis.limits else applicability


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STOPS = (SavedTensorMutated, RefusedWrite, SecondBackward, InferenceSaved)


def _inside(node: ast.AST, outer: ast.AST) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if not getattr(outer, "lineno", 0) <= first or not last <= (getattr(outer, "end_lineno", 0) or 0):
        return False
    return any(part is node for part in ast.walk(outer))
