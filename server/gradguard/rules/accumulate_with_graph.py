"""GG201: a running value keeps the graph of every iteration."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, GraphKept
from gradguard.findings import Finding
from gradguard.rules.kept import severity, what_is_kept
from gradguard.rules.model import Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """At the statement that accumulates."""
    if not isinstance(event, GraphKept) or event.how != "accumulate":
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} accumulates a value with its graph: {what_is_kept(event)}",
        severity=severity(event),
        related=[(event.loop, "every pass of this loop adds to the graph")],
    )


RULE = Rule(
    "GG201",
    "accumulate-with-graph",
    "a running total, average or statistic keeps the graph of every iteration, and no backward goes through it",
    (GraphKept,),
    render,
)
