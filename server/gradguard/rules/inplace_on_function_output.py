"""GG109: in-place op on a tensor that a custom Function returned as it got it, or on what a full backward hook wraps."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import Context, Rule
from gradguard.rules.refused import render_refused


def render(context: Context, event: Event) -> Finding | None:
    """Writes refused because of: being such an output."""
    if isinstance(event, RefusedWrite) and event.reason in ("function-output",):
        return render_refused(context, event)
    return None


RULE = Rule(
    "GG109",
    "inplace-on-function-output",
    "in-place op on a tensor that a custom Function returned as it got it, or on what a full backward hook wraps",
    (RefusedWrite,),
    render,
)
