"""GG207: `backward(create_graph=True)` keeps `.grad` and the graph in a cycle."""

from __future__ import annotations

from gradguard.engine.domain.events import CreateGraphCycle, Event
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule


def render(context: Context, event: Event) -> Finding | None:
    """At the backward."""
    if not isinstance(event, CreateGraphCycle):
        return None
    return context.finding(
        event,
        "`backward(create_graph=True)` keeps `.grad` and graph in a cycle; use `torch.autograd.grad`",
        severity=WARNING,
    )


RULE = Rule(
    "GG207",
    "create-graph-cycle",
    "`backward(create_graph=True)` keeps `.grad` and graph in a cycle",
    (CreateGraphCycle,),
    render,
)
