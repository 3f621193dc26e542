"""Plans for what a custom Function keeps on its `ctx`: kept by `save_for_backward` instead."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from gradguard.engine.domain.events import ContextKeeps
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan, spans_text
from gradguard.fixplans.blocks import function_around
from gradguard.fixplans.model import Context
from gradguard.source.blocks import above


def saved_for_backward(context: Context, event: ContextKeeps) -> list[FixPlan]:
    """`ctx.save_for_backward(y)` and `(y,) = ctx.saved_tensors` for `ctx.y = y` and `ctx.y`.

    Only where the attribute is set once, to a name, and read in `backward` alone, which can take a local of that name.
    It needs care: a second backward without `retain_graph`, or a write to the tensor, raises from then on.
    """
    tree = context.analysis.sources[event.place.path].tree
    statement = event.place.node
    forward = function_around(tree, statement)
    owner = next((one for one in above(tree, statement) if isinstance(one, ast.ClassDef)), None)
    if owner is None or not isinstance(forward, ast.FunctionDef):
        return []
    backward = next(
        (one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "backward"), None
    )
    match statement:
        case ast.Assign([ast.Attribute(ast.Name(ctx), attribute)], ast.Name(name)) if backward is not None:
            pass
        case _:
            return []
    if not backward.args.args:
        return []
    theirs = backward.args.args[0].arg
    everywhere = [one for one in ast.walk(owner) if isinstance(one, ast.Attribute)]
    uses = _reads(backward, theirs, attribute)
    where = _saved(everywhere, forward, backward, ctx, theirs, statement)
    alone = sum(one.attr == attribute for one in everywhere) == 1 + len(uses)
    if where is None or not alone or _lent(backward, theirs) or name in _names(backward):
        return []
    before = {one for one in ast.walk(forward) if getattr(one, "lineno", statement.lineno) < statement.lineno}
    others = (
        one for one in context.analysis.events if isinstance(one, ContextKeeps) and one.place.node in before
    )
    if any(saved_for_backward(context, one) for one in others):
        # One after the other: a second call would take the place of what the first has saved.
        return []
    code = f"{ctx}.save_for_backward({name})"
    spans = {
        key: spans_text(*(context.analysis.span(Place(event.place.path, node)) for node in nodes))
        for key, nodes in {"uses": uses, **where}.items()
    }
    title = f"Keep it with `{code}`"
    return context.plan(
        "save-for-backward",
        title,
        Applicability.UNSAFE,
        statement,
        event.place,
        code=code,
        name=name,
        context=theirs,
        **spans,
    )


def _reads(backward: ast.FunctionDef, ctx: str, attribute: str) -> list[ast.AST]:
    return [
        one
        for one in ast.walk(backward)
        if isinstance(one, ast.Attribute)
        and one.attr == attribute
        and isinstance(one.ctx, ast.Load)
        and isinstance(one.value, ast.Name)
        and one.value.id == ctx
    ]


def _lent(backward: ast.FunctionDef, ctx: str) -> bool:
    """Whether `backward` hands its context to somebody, who may read the attribute."""
    names = sum(isinstance(one, ast.Name) and one.id == ctx for one in ast.walk(backward))
    read = sum(
        isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == ctx
        for one in ast.walk(backward)
    )
    return names != read


def _names(function: ast.FunctionDef) -> set[str]:
    used = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    return used | {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}


def _saved(
    everywhere: list[ast.Attribute],
    forward: ast.FunctionDef,
    backward: ast.FunctionDef,
    ctx: str,
    theirs: str,
    statement: ast.Assign,
) -> dict[str, list[ast.AST]] | None:
    """Where the tensor goes in: in front of `first` if nothing is saved yet, else into `call` and `unpacked`.

    The call must stand next to the attribute's statement, so that no name changes between them.
    """
    calls = [one for one in everywhere if one.attr == "save_for_backward"]
    unpackings = [one for one in everywhere if one.attr == "saved_tensors"]
    if not calls and not unpackings:
        docstring = ast.get_docstring(backward, clean=False) is not None and len(backward.body) > 1
        return {"first": [backward.body[int(docstring)]]}
    if len(calls) != 1 or len(unpackings) != 1:
        return None
    for body in _blocks(forward):
        for one, other in itertools.pairwise(body):
            call = other if one is statement else one
            if statement not in (one, other) or not _is_call(call, calls[0]):
                continue
            for unpacking in backward.body:
                match unpacking:
                    case ast.Assign([ast.Tuple() as targets], value) if value is unpackings[0]:
                        plain = all(isinstance(target, ast.Name) for target in targets.elts)
                        return {"call": [call], "unpacked": [unpacking]} if plain else None
    return None


def _is_call(statement: ast.stmt, function: ast.Attribute) -> bool:
    match statement:
        case ast.Expr(ast.Call(func, args, [])) if func is function:
            return not any(isinstance(arg, ast.Starred) for arg in args)
    return False


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for one in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(one, field, None)
            if isinstance(block, list):
                yield block
