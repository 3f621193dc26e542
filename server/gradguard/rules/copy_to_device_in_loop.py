"""GG304: on every pass of the step loop a value of the host is copied to the device, one that could have been there."""

from __future__ import annotations

from gradguard.engine.domain.events import DeviceCopy, Event
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, Context, Rule, quoted
from gradguard.rules.reading import counts, often

_WHAT = {
    "number": "copies a number to the device",
    "values": "copies the same numbers to the device",
    "same": "copies the same tensor to the device",
    "made": "makes a tensor on the host and copies it to the device",
}


def render(context: Context, event: Event) -> Finding | None:
    """At the copy."""
    if (
        not isinstance(event, DeviceCopy)
        or not counts(context, event)
        or "default" in context.analysis.devices
    ):
        return None
    if event.how == "pageable":
        message = f"{quoted(event.text)} may wait {often(event)}: the memory it reads is not pinned"
    else:
        message = f"{quoted(event.text)} {_WHAT[event.how]} {often(event)}"
    return context.finding(
        event,
        message,
        severity=INFORMATION,
        related=[(event.loop, "in this loop"), (event.source, "made here without `pin_memory`")],
    )


RULE = Rule(
    "GG304",
    "copy-to-device-in-loop",
    "a number, or a tensor that could be on the device, that is copied there on every pass of the step loop",
    (DeviceCopy,),
    render,
)
