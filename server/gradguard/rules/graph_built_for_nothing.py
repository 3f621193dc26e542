"""GG204: a graph is recorded that nobody differentiates."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, UnusedGraph
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, Context, Rule, quoted

_WHY = {
    "eval": "records a graph that no backward uses; wrap the loop in `torch.no_grad()`",
    "unused": "records a graph that no backward uses; wrap the loop in `torch.no_grad()`",
    "target": "records a graph through a network that no optimizer trains",
}


def render(context: Context, event: Event) -> Finding | None:
    """At the forward call, or at a `torch.no_grad()` that stands alone."""
    if not isinstance(event, UnusedGraph):
        return None
    if event.why == "bare":
        message = "`torch.no_grad()` as a statement does nothing; use it in `with` or as a decorator"
        return context.finding(
            event,
            message,
            severity=INFORMATION,
        )
    return context.finding(
        event,
        f"{quoted(event.text)} {_WHY[event.why]}",
        severity=INFORMATION,
        related=[
            (event.caller, "called here, without `torch.no_grad()`"),
            (event.loop, "in this loop"),
        ],
    )


RULE = Rule(
    "GG204",
    "graph-built-for-nothing",
    "evaluation, a target or teacher network, or a bare `torch.no_grad()`: recorded but never differentiated",
    (UnusedGraph,),
    render,
)
