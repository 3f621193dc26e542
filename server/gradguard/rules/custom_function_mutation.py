"""GG108: an autograd.Function writes what it must not write."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, FunctionMutation
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.blocks import function_around
from gradguard.rules.model import WARNING, Context, Rule, quoted
from gradguard.rules.repair import made_anew, root_name

_WHAT = {
    "input": "an input, without `ctx.mark_dirty`",
    "saved": "a saved tensor: a second backward reads the changed values",
    "grad_output": "its incoming gradient, which other branches may share",
}


def render(context: Context, event: Event) -> Finding | None:
    """One finding for each write."""
    if not isinstance(event, FunctionMutation):
        return None
    fixes = made_anew(context, event.place, event.text)
    if event.what == "input":
        fixes = [*_marked(context, event), *fixes]
    return context.finding(
        event,
        f"`{event.op}` on {quoted(event.text)} writes {_WHAT[event.what]}",
        severity=WARNING,
        fixes=fixes,
    )


def _marked(context: Context, event: FunctionMutation) -> list[FixPlan]:
    """`ctx.mark_dirty(x)` before the write."""
    place = event.place
    function = function_around(context.analysis.sources[place.path].tree, place.node)
    name = root_name(event.text)
    if not isinstance(function, ast.FunctionDef) or not function.args.args or not name:
        return []
    mark = f"{function.args.args[0].arg}.mark_dirty({name})"
    return context.plan(
        "insert-before", f"Declare it: `{mark}`", Applicability.UNSAFE, place.node, place, code=mark
    )


RULE = Rule(
    "GG108",
    "custom-function-mutation",
    "autograd.Function that writes an input without mark_dirty, or writes a saved tensor or grad_output in backward",
    (FunctionMutation,),
    render,
)
