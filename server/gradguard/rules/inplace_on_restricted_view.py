"""GG103: write to one of several views made by one call, or to a view made under no_grad."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import Context, Rule
from gradguard.rules.refused import render_refused


def render(context: Context, event: Event) -> Finding | None:
    """Writes refused because of: the kind of view."""
    if isinstance(event, RefusedWrite) and event.reason in (
        "multi-view",
        "no-grad-view",
        "stale-view",
        "detached-view",
    ):
        return render_refused(context, event)
    return None


RULE = Rule(
    "GG103",
    "inplace-on-restricted-view",
    "write to one of several views made by one call, or to a view made under no_grad",
    (RefusedWrite,),
    render,
)
