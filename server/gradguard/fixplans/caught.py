"""Where the program goes on after torch has raised: it then does without a repair what it would do otherwise with one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gradguard.engine.domain.tensors import Place
from gradguard.fixplans.model import Context
from gradguard.source.blocks import above, by_name, gathered, kept

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ERRORS = frozenset({"RuntimeError", "Exception", "BaseException"})
_NEVER_NAMED = frozenset({"forward", "__call__", "__init__", "__getitem__", "__iter__", "__next__"})
"""Methods that run without being named."""


def caught(context: Context, place: Place) -> bool:
    """Whether an error that a statement raises may be caught in its file, by what is seen of the names."""
    tree = context.analysis.sources[place.path].tree
    bodies = gathered(tree, "_gradguard_catching", _catching, _joined)
    if gathered(tree, "_gradguard_forgiving", _forgives, any):
        bodies = [*bodies, *gathered(tree, "_gradguard_managed", _managed, _joined)]
    if not bodies:
        return False
    holding = above(tree, place.node)
    if not kept(tree, "_gradguard_caught", lambda _: frozenset(chain.from_iterable(bodies))).isdisjoint(
        holding
    ):
        return True
    leading = _leading_to(tree, {one.name for one in holding if isinstance(one, _FUNCTIONS)})
    named = kept(tree, "_gradguard_guarded", lambda _: frozenset(_names(list(chain.from_iterable(bodies)))))
    return bool(leading & _NEVER_NAMED) or bool(leading & named)


def _joined(found: Iterable[list[list[ast.stmt]]]) -> list[list[ast.stmt]]:
    return list(chain.from_iterable(found))


def _leading_to(tree: ast.Module, names: set[str]) -> set[str]:
    """These functions, and those that name one of them, and so on."""
    callers = gathered(tree, "_gradguard_callers", _callers, by_name) if names else {}
    waiting = [*names]
    while waiting:
        following = set(callers.get(waiting.pop(), ())) - names
        names |= following
        waiting += following
    return names


def _callers(statement: ast.stmt) -> dict[str, list[str]]:
    """The functions in a statement by what they name."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(statement):
        if isinstance(node, _FUNCTIONS):
            for name in sorted(set(_names(node.body))):
                found.setdefault(name, []).append(node.name)
    return found


def _names(body: Sequence[ast.stmt]) -> Iterator[str]:
    for part in chain.from_iterable(map(ast.walk, body)):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _catching(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Bodies behind which the program goes on when they raise what torch raises."""
    found = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
            found.append(node.body)
    return found


def _forgives(statement: ast.stmt) -> bool:
    """Whether a manager of the program swallows errors: its `__exit__` says so, or its `yield` stands in a `try`."""
    for node in ast.walk(statement):
        if isinstance(node, _FUNCTIONS) and node.name in ("__exit__", "__aexit__"):
            values = [part.value for part in ast.walk(node) if isinstance(part, ast.Return)]
            if any(
                value is not None and not (isinstance(value, ast.Constant) and not value.value)
                for value in values
            ):
                return True
        if isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
            if any(isinstance(part, ast.Yield) for one in node.body for part in ast.walk(one)):
                return True
    return False


def _managed(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Bodies of managers that may be the program's own."""
    return [
        node.body
        for node in ast.walk(statement)
        if isinstance(node, (ast.With, ast.AsyncWith))
        and not all(ast.unparse(item.context_expr).startswith("torch.") for item in node.items)
    ]


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {ast.unparse(kind).rpartition(".")[2] for kind in kinds if kind is not None}
    # What is raised again is not caught.
    return (not names or bool(names & _ERRORS)) and not isinstance(handler.body[-1], ast.Raise)
