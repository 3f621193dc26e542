"""Functions that differ in constants only, such as the makers of one network in many sizes.

What is wrong with one of them is wrong with all, and each of them may take as long as the whole network. So where
some were costly, the others are left out, and the report says so.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

COSTLY = 3_000
"""Steps."""
ENOUGH = 2
"""Costly functions of one shape that are run."""

_CONSTANT = "?"
_HELD = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Shapes:
    """The functions of a file that were run, by their shape."""

    _costly: dict[Hashable, list[str]] = field(default_factory=dict)

    def left_out(self, node: Function, owner: str) -> str:
        """Name of a function that stands for this one; empty where it must be run itself."""
        if not self._costly or owner or not makes(node):
            return ""
        known = self._costly.get(shape(node), [])
        return known[0] if len(known) >= ENOUGH else ""

    def ran(self, node: Function, owner: str, steps: int) -> None:
        """A function was run, or its answer taken over."""
        if steps > COSTLY and not owner and makes(node):
            self._costly.setdefault(shape(node), []).append(node.name)


def makes(node: ast.AST) -> bool:
    """Whether a function only puts values together and calls, as one does that makes an object."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return isinstance(node.body[-1], ast.Return) and all(
        isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) for statement in node.body
    )


def shape(node: Function) -> Hashable:
    """A function's code without its name and its constants."""
    known: Hashable | None = getattr(node, "_gradguard_shape", None)
    if known is None:
        known = tuple(_shape(part) for part in (node.args, *node.body, *node.decorator_list))
        node._gradguard_shape = known  # type: ignore[union-attr]
    return known


def _shape(node: object) -> Hashable:
    if isinstance(node, ast.Constant):
        return _CONSTANT
    if isinstance(node, list):
        return tuple(_shape(item) for item in node)
    if not isinstance(node, ast.AST):
        return node if isinstance(node, Hashable) else None
    parts = tuple((name, _shape(value)) for name, value in ast.iter_fields(node) if name != "ctx")
    if isinstance(node, _HELD) and all(_plain(value) for name, value in parts if name != "op"):
        return _CONSTANT
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        held = [*node.args, *(keyword.value for keyword in node.keywords)]
        if all(_shape(value) == _CONSTANT for value in held):
            return _CONSTANT
    return (type(node).__name__, *parts)


def _plain(part: Hashable) -> bool:
    return part == _CONSTANT or (isinstance(part, tuple) and all(one == _CONSTANT for one in part))
