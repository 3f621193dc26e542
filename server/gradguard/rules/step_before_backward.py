"""GG106: parameters are updated between a forward and a later backward through it."""

from __future__ import annotations

from gradguard.findings import Applicability, Finding
from gradguard.rules.model import ERROR, Context, Rule, quoted
from gradguard.tape.events import Event, SavedTensorMutated


def render(context: Context, event: Event) -> Finding | None:
    """Counted writes by an optimizer."""
    if not isinstance(event, SavedTensorMutated) or event.write.kind != "step" or not event.write.counted:
        return None
    saved = event.saved
    fixes = context.plan(
        "step-after-backward",
        "Step after both backwards",
        Applicability.UNSAFE,
        event.write.statement,
        event.write.place,
    )
    return context.finding(
        event,
        f"`{event.write.op}` updates {quoted(saved.text, 'parameters')} that a later backward still needs as they were",
        severity=ERROR,
        related=[
            (saved.place, f"saved here by `{saved.op}`"),
            (event.backward, "this backward needs the values from before the update"),
        ],
        fixes=fixes if event.backward is not None else (),
    )


RULE = Rule(
    "GG106",
    "step-before-backward",
    "optimizer step or another parameter update between a forward and a later backward through it",
    (SavedTensorMutated,),
    render,
)
