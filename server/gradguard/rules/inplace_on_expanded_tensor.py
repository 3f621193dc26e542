"""GG104: write to memory that expand or broadcasting made overlap."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import Context, Rule
from gradguard.rules.refused import render_refused


def render(context: Context, event: Event) -> Finding | None:
    """Writes refused because elements overlap: those of the tensor, or its own and those that are read."""
    if isinstance(event, RefusedWrite) and event.reason in ("expanded", "overlap"):
        return render_refused(context, event)
    return None


RULE = Rule(
    "GG104",
    "inplace-on-expanded-tensor",
    "write to memory that expand or broadcasting made overlap",
    (RefusedWrite,),
    render,
)
