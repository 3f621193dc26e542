"""GG107: a tensor made under inference_mode is saved for backward, or written outside it."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, InferenceSaved, RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import ERROR, Context, Rule, quoted
from gradguard.rules.refused import render_refused


def render(context: Context, event: Event) -> Finding | None:
    """Both ways in which torch refuses such a tensor."""
    if isinstance(event, RefusedWrite):
        return render_refused(context, event) if event.reason == "inference" else None
    if not isinstance(event, InferenceSaved):
        return None
    return context.finding(
        event,
        f"`{event.op}` must save {quoted(event.text)}, which was made under inference_mode",
        severity=ERROR,
        related=[(event.made, "made under inference_mode here")],
        notes=("Inference tensors cannot be saved for backward",),
    )


RULE = Rule(
    "GG107",
    "inference-tensor-in-autograd",
    "tensor made under inference_mode saved for backward, or written outside it",
    (InferenceSaved, RefusedWrite),
    render,
)
