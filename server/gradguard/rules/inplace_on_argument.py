"""GG120: a function writes into its caller's tensor."""

from __future__ import annotations

from gradguard.engine.domain.events import ArgumentWrite, Event
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The write."""
    if not isinstance(event, ArgumentWrite):
        return None
    return context.finding(
        event,
        f"`{event.function}` writes its argument {quoted(event.text)} in place (`{event.op}`)",
        severity=WARNING,
    )


RULE = Rule(
    "GG120",
    "inplace-on-argument",
    "a function writes into its caller's tensor",
    (ArgumentWrite,),
    render,
    on=False,
)
