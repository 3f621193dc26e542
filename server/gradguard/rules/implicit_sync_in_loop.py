"""GG302: reads that do not look like reads, on every pass of the step loop."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, Context, Rule, quoted
from gradguard.rules.reading import counts, often

_HOW = {
    "bool": "as a condition",
    "format": "as text",
    "print": "as text",
    "index": "as an index or size",
    "size": "as a size",
    "mask": "through a mask",
    "mask again": "again in its backward",
}


def render(context: Context, event: Event) -> Finding | None:
    """Implicit reads."""
    if not isinstance(event, HostRead) or not event.implicit or event.compiled or not counts(context, event):
        return None
    how = _HOW.get(event.how, f"by `{event.how}`")
    return context.finding(
        event,
        f"{quoted(event.text)} is read {how}: the host waits for the device {often(event)}",
        severity=INFORMATION,
        related=[(event.loop, "in this loop")],
    )


RULE = Rule(
    "GG302",
    "implicit-sync-in-loop",
    "a tensor read as a condition, number, text, index or size, or by an op of data-dependent size, on every pass",
    (HostRead,),
    render,
)
