"""Plans for writes that others are meant to see, and for what is kept by reference."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import (
    ArgumentWrite,
    FunctionMutation,
    GradientAlias,
    HookWrite,
    InputRewritten,
    SavedTensorMutated,
)
from gradguard.findings import Applicability, FixPlan
from gradguard.fixplans.blocks import function_around
from gradguard.fixplans.model import Context
from gradguard.fixplans.writes import copied, made_anew, root_name, ways_out
from gradguard.rules.model import quoted


def argument_written(context: Context, event: ArgumentWrite) -> list[FixPlan]:
    """A new tensor in the place of the argument."""
    return made_anew(context, event.place, event.text)


def hook_written(context: Context, event: HookWrite) -> list[FixPlan]:
    """A new gradient, which the hook returns."""
    return made_anew(context, event.place, event.text, "return-gradient")


def function_written(context: Context, event: FunctionMutation) -> list[FixPlan]:
    """An input declared as written, or a new tensor."""
    marked = _marked(context, event) if event.what == "input" and not event.leaf else []
    return [*marked, *made_anew(context, event.place, event.text)]


def _marked(context: Context, event: FunctionMutation) -> list[FixPlan]:
    """`ctx.mark_dirty(x)` before the write."""
    place = event.place
    function = function_around(context.analysis.sources[place.path].tree, place.node)
    name = root_name(event.text)
    if not isinstance(function, ast.FunctionDef) or not function.args.args or not name:
        return []
    if name not in [each.arg for each in function.args.args[1:]] or not _returned(function, name):
        return []  # torch takes only an input for it that the function returns
    mark = f"{function.args.args[0].arg}.mark_dirty({name})"
    return context.plan(
        "insert-before", f"Declare it: `{mark}`", Applicability.UNSAFE, place.node, place, code=mark
    )


def _returned(function: ast.FunctionDef, name: str) -> bool:
    """Whether every way out of a function gives back an argument that keeps its name, as it is or among others."""
    parts = list(ast.walk(function))
    if any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in parts):
        augmented = {id(one.target) for one in parts if isinstance(one, ast.AugAssign)}
        stores = (one for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
        if any(one.id == name and id(one) not in augmented for one in stores):
            return False
    returns = [one.value for one in parts if isinstance(one, ast.Return)]
    given = [one.elts if isinstance(one, ast.Tuple) else [one] for one in returns]
    return bool(given) and all(any(_gives(part, name) for part in each) for each in given)


def _gives(node: ast.expr | None, name: str) -> bool:
    """Whether an expression is the tensor of a name: written by the last of its methods, if by any."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not node.func.attr.endswith("_") or node.func.attr.endswith("__"):
            return False
        node = node.func.value
    return isinstance(node, ast.Name) and node.id == name


def gradient_kept(context: Context, event: GradientAlias) -> list[FixPlan]:
    """A clone of the gradient."""
    title = "Keep a clone of the gradient"
    return context.plan("clone", title, Applicability.UNSAFE, _gradient(event), event.place)


def _gradient(event: GradientAlias) -> ast.AST | None:
    """The expression that reads `.grad`; a clone keeps its numbers, but no longer follows later ones."""
    return next(
        (
            node
            for node in ast.walk(event.place.node)
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)
        ),
        None,
    )


def rewritten_inside(context: Context, event: InputRewritten) -> list[FixPlan]:
    """A clone for the call that rewrites."""
    node = event.place.node
    if not isinstance(node, ast.Call):
        return []
    given = next((arg for arg in node.args if ast.unparse(arg) == event.text), None)
    title = f"Give the call a clone of {quoted(event.text)}"
    return context.plan("clone", title, Applicability.UNSAFE, given, event.place)


def unseen(context: Context, event: SavedTensorMutated) -> list[FixPlan]:
    """The ways out of a write that no counter saw."""
    write = event.write
    plans = ways_out(context, event)
    if write.kind == "numpy":
        plans += copied(context, write)
    return plans
