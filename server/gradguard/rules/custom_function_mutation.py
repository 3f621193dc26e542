"""GG108: an autograd.Function writes what it must not write."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, FunctionMutation
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted

_WHAT = {
    "input": "an input, without `ctx.mark_dirty`",
    "saved": "a saved tensor: a second backward raises",
    "grad_output": "its incoming gradient, which other branches may share",
}


def render(context: Context, event: Event) -> Finding | None:
    """One finding for each write."""
    if not isinstance(event, FunctionMutation):
        return None
    return context.finding(
        event,
        f"`{event.op}` on {quoted(event.text)} writes {_WHAT[event.what]}",
        severity=WARNING,
    )


RULE = Rule(
    "GG108",
    "custom-function-mutation",
    "autograd.Function that writes an input without mark_dirty, or writes a saved tensor or grad_output in backward",
    (FunctionMutation,),
    render,
)
