"""Functions that differ in constants only, such as the makers of one network in many sizes.

What is wrong with one of them is wrong with all, and each of them may take as long as the whole network. So where
some were costly, the others are left out, and the report says so. Of functions that only made something, without
a trace on the tape, those that differ in the constant options which they pass on are alike, too. And all of those
that only make something share one budget; one that comes late has little of it left, and is stopped early.

    def net18(): return make(Net, layers=[2, 2], deep=True)        alike: what they make costs as much
    def net34(): return make(Net, layers=[3, 4], width=64)
    def wide34(): return make(WideNet, layers=[3, 4], width=64)    another: it runs the code of another class
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from gradguard.engine.state.path import MAX_STEPS

COSTLY = 3_000
"""Steps from which a function counts."""
ENOUGH = 12_000
"""Steps that costly functions of one shape take before the others are left out."""

TOGETHER = MAX_STEPS
"""Steps that a file's makers which put nothing on the tape may take: what a script may."""

_CONSTANT = "?"
_HELD = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class _Ran:
    """Costly functions of one shape."""

    name: str
    steps: int = 0


@dataclass(slots=True)
class Shapes:
    """The functions of a file that were run, by their shape."""

    _costly: dict[Hashable, _Ran] = field(default_factory=dict)
    _quiet: dict[Hashable, _Ran] = field(default_factory=dict)
    """Those that put nothing on the tape; with the options in which they differ, they do the same."""
    _spent: int = 0
    """Steps of all that put nothing on the tape."""

    def allowed(self, node: Function, owner: str, steps: int) -> int:
        """The budget of a function that would have so many steps if it were no maker."""
        return steps if owner or not makes(node) else min(steps, max(COSTLY, TOGETHER - self._spent))

    def left_out(self, node: Function, owner: str) -> str:
        """Why a function need not be run itself; empty where it must be."""
        if not self._costly or owner or not makes(node):
            return ""
        known = self._costly.get(shape(node))
        if known is not None and known.steps >= ENOUGH:
            return f"like `{known.name}` but for constants, and as costly"
        known = self._quiet.get(shape(node, options=False))
        if known is not None and known.steps >= ENOUGH:
            return f"like `{known.name}` but for constant options, and as costly"
        return ""

    def ran(self, node: Function, owner: str, steps: int, *, quiet: bool) -> None:
        """A function was run, or its answer taken over."""
        if owner or not makes(node):
            return
        if quiet:
            self._spent += steps
        if steps < COSTLY:
            return
        self._costly.setdefault(shape(node), _Ran(node.name)).steps += steps
        if quiet:
            self._quiet.setdefault(shape(node, options=False), _Ran(node.name)).steps += steps


def makes(node: ast.AST) -> bool:
    """Whether a function only puts values together and calls, as one does that makes an object."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return isinstance(node.body[-1], ast.Return) and all(
        isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) for statement in node.body
    )


def shape(node: Function, *, options: bool = True) -> Hashable:
    """A function's code without its name and its constants; without constant keyword arguments either, if so asked."""
    name = "_gradguard_shape" if options else "_gradguard_bare_shape"
    known: Hashable | None = getattr(node, name, None)
    if known is None:
        body = node.body if options else [statement for statement in node.body if not says(statement)]
        try:
            known = tuple(_shape(part, options) for part in (node.args, *body, *node.decorator_list))
        except RecursionError:
            known = (node,)  # like no other
        setattr(node, name, known)
    return known


def says(statement: ast.stmt) -> bool:
    """Whether it is text, as a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _shape(node: object, options: bool) -> Hashable:
    if isinstance(node, ast.Constant):
        return _CONSTANT
    if isinstance(node, list):
        return tuple(_shape(item, options) for item in node)
    if not isinstance(node, ast.AST):
        return node if isinstance(node, Hashable) else None
    if isinstance(node, ast.Call):
        return _call_shape(node, options)
    parts = tuple((name, _shape(value, options)) for name, value in ast.iter_fields(node) if name != "ctx")
    if isinstance(node, _HELD) and all(_plain(value) for name, value in parts if name != "op"):
        return _CONSTANT
    return (type(node).__name__, *parts)


def _call_shape(node: ast.Call, options: bool) -> Hashable:
    args = tuple(_shape(one, options) for one in node.args)
    keywords = [(one.arg, _shape(one.value, options)) for one in node.keywords]
    if isinstance(node.func, ast.Name) and node.func.id == "dict":
        if _plain(args) and all(value == _CONSTANT for _, value in keywords):
            return _CONSTANT
    given = tuple(one for one in keywords if options or one[1] != _CONSTANT)
    return ("Call", _shape(node.func, options), args, given)


def _plain(part: Hashable) -> bool:
    return part == _CONSTANT or (isinstance(part, tuple) and all(one == _CONSTANT for one in part))
