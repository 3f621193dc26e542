"""GG303: a host read inside compiled code."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """Reads while a compiled function or module runs."""
    if not isinstance(event, HostRead) or not event.compiled:
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} reads a tensor inside compiled code, which breaks the graph in two",
        severity=WARNING,
    )


RULE = Rule(
    "GG303",
    "item-in-compiled-code",
    "a host read inside a function compiled by `torch.compile` breaks the graph",
    (HostRead,),
    render,
)
