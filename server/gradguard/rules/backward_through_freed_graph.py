"""GG203: a second backward through a graph that the first one freed."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, SecondBackward
from gradguard.findings import Finding
from gradguard.rules.model import ERROR, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """At the line that carries the old graph over; at the backward where nothing is carried."""
    if not isinstance(event, SecondBackward):
        return None
    if event.carried is not None:
        message = (
            f"{quoted(event.text)} carries the graph of an earlier backward into the next one, which raises"
        )
    elif event.losses:
        message = f"losses share the graph of `{event.op}`, which the first backward frees: sum them"
    elif event.first.node is event.second.node:
        message = f"backward runs again through the graph of `{event.op}`, which this line has already freed"
    else:
        message = f"second backward through the graph of `{event.op}`, which the first one freed"
    return context.finding(
        event,
        message,
        severity=ERROR,
        related=[
            (event.first, "freed by this backward"),
            (event.second if event.carried is not None else None, "this backward raises"),
            (event.made, "the shared part is made here"),
        ],
        notes=("Trying to backward through the graph a second time",),
    )


RULE = Rule(
    "GG203",
    "backward-through-freed-graph",
    "second backward through a freed graph; also state that carries the graph over to the next iteration",
    (SecondBackward,),
    render,
)
