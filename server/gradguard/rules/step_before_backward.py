"""GG106: parameters are updated between a forward and a later backward through it."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, SavedTensorMutated
from gradguard.findings import Finding
from gradguard.rules.inplace_on_saved_tensor import TORCH_SAYS
from gradguard.rules.model import ERROR, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """Counted writes by an optimizer."""
    if not isinstance(event, SavedTensorMutated) or event.write.kind != "step" or not event.write.counted:
        return None
    saved, carried = event.saved, event.carried
    return context.finding(
        event,
        f"`{event.write.op}` updates {quoted(saved.text, 'parameters')} that a later backward still needs as they were",
        severity=ERROR,
        related=[
            (saved.place, f"saved here by `{saved.op}`"),
            (
                carried.carried if carried is not None else None,
                "brings the graph of an earlier pass, from before the update",
            ),
            (event.backward, "this backward needs the values from before the update"),
        ],
        notes=(TORCH_SAYS,),
    )


RULE = Rule(
    "GG106",
    "step-before-backward",
    "optimizer step or another parameter update between a forward and a later backward through it",
    (SavedTensorMutated,),
    render,
)
