"""GG301: `.item()` and its like on every pass of the step loop."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, WARNING, Context, Rule, quoted
from gradguard.rules.reading import counts, often


def render(context: Context, event: Event) -> Finding | None:
    """Explicit reads."""
    if not isinstance(event, HostRead) or event.implicit or event.compiled or not counts(context, event):
        return None
    loud = event.per in ("parameter", "element") or event.used == "guarded" or event.before_backward
    why = ", for a value used under a guard" if event.used else ""
    if event.before_backward:
        why = ", before backward"
    return context.finding(
        event,
        f"{quoted(event.text)} makes the host wait for the device {often(event)}{why}",
        severity=WARNING if loud else INFORMATION,
        related=[(event.loop, "in this loop")],
    )


RULE = Rule(
    "GG301",
    "item-in-loop",
    "`.item()`, `.tolist()`, `.cpu()` or `.numpy()` on every pass of the innermost step loop",
    (HostRead,),
    render,
)
