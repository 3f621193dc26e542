"""GG202: values that carry their graph are put away, iteration after iteration."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, GraphKept
from gradguard.findings import Finding
from gradguard.rules.kept import severity, what_is_kept
from gradguard.rules.model import Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """At the statement that stores."""
    if not isinstance(event, GraphKept) or event.how != "store":
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} is stored with its graph on every pass: {what_is_kept(event)}",
        severity=severity(event),
        related=[(event.loop, "every pass of this loop stores another graph")],
    )


RULE = Rule(
    "GG202",
    "store-with-graph",
    "a value that carries its graph is put into a container or attribute that outlives the iteration",
    (GraphKept,),
    render,
)
