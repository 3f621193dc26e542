"""GG111: an in-place first op of a sub-module rewrites an input that is read again."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import Event, InputRewritten
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The call that rewrites."""
    if not isinstance(event, InputRewritten):
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} is rewritten in place by `{event.op}` inside this call and read again afterwards",
        severity=WARNING,
        related=[
            (event.submodule, "written in place here"),
            (event.read_again, "read again here, with other values"),
        ],
        fixes=_cloned(context, event),
    )


def _cloned(context: Context, event: InputRewritten) -> list[FixPlan]:
    """A clone for the call that rewrites."""
    node = event.place.node
    if not isinstance(node, ast.Call):
        return []
    given = next((arg for arg in node.args if ast.unparse(arg) == event.text), None)
    title = f"Give the call a clone of {quoted(event.text)}"
    return context.plan("clone", title, Applicability.UNSAFE, given, event.place)


RULE = Rule(
    "GG111",
    "input-rewritten-by-submodule",
    "an in-place first op of a sub-module rewrites the block's input, which is read again afterwards",
    (InputRewritten,),
    render,
)
