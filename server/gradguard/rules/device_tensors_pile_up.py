"""GG210: tensors without a graph pile up on the device over a whole pass through the data."""

from __future__ import annotations

from gradguard.engine.domain.events import DevicePile, Event
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, Context, Rule, quoted
from gradguard.rules.reading import counts


def render(context: Context, event: Event) -> Finding | None:
    """Where they are kept."""
    if not isinstance(event, DevicePile) or not counts(context, event):
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} of every batch stays on the device: a total or `.cpu()` leaves room there",
        severity=INFORMATION,
        related=[(event.loop, "in this loop")],
    )


RULE = Rule(
    "GG210",
    "device-tensors-pile-up",
    "tensors of a whole pass through the data that are kept on the device, though they have no graph",
    (DevicePile,),
    render,
)
