"""GG110: a tensor hook writes its gradient argument."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HookWrite
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The write inside the hook."""
    if not isinstance(event, HookWrite):
        return None
    return context.finding(
        event,
        f"the hook's `{event.op}` writes {quoted(event.text)} in place; branches that share it get wrong gradients",
        severity=WARNING,
        related=[(event.registered, "registered here")],
    )


RULE = Rule(
    "GG110",
    "hook-writes-gradient",
    "a tensor hook writes its gradient argument: branches share that tensor, so their gradients become wrong without an error",
    (HookWrite,),
    render,
)
