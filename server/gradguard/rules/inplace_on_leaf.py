"""GG102: in-place op, grad mode on, on a leaf that requires grad or on a view of it."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import Context, Rule
from gradguard.rules.refused import render_refused


def render(context: Context, event: Event) -> Finding | None:
    """Writes refused because of: being a leaf, or a view of one."""
    if isinstance(event, RefusedWrite) and event.reason in ("leaf", "view-of-leaf"):
        return render_refused(context, event)
    return None


RULE = Rule(
    "GG102",
    "inplace-on-leaf",
    "in-place op, grad mode on, on a leaf that requires grad or on a view of it",
    (RefusedWrite,),
    render,
)
