"""GG301: `.item()` and its like on every pass of the step loop."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.model import INFORMATION, WARNING, Context, Rule, quoted
from gradguard.rules.reading import counts, often
from gradguard.source.loops import guardable, read_behind


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
        fixes=_fixes(context, event) if event.per == "step" and not context.brief else (),
    )


def _fixes(context: Context, event: HostRead) -> list[FixPlan]:
    """One read behind the loop, or on few of its passes: where the loop lets them be."""
    if event.statement is None:
        return []
    source = context.analysis.sources[event.place.path]
    span = source.span(event.statement)
    plans: list[FixPlan] = []
    behind = read_behind(source, span)
    if behind is not None and behind[1] is event.place.node:
        title = "Accumulate on the device, read once after the loop"
        plans += context.plan("item-after-loop", title, Applicability.UNSAFE, event.statement, event.place)
    if guardable(source, span) is not None:
        title = "Read it every 100 steps"
        plans += context.plan("guard-read", title, Applicability.UNSAFE, event.statement, event.place)
    return plans


RULE = Rule(
    "GG301",
    "item-in-loop",
    "`.item()`, `.tolist()`, `.cpu()` or `.numpy()` on every pass of the innermost step loop",
    (HostRead,),
    render,
)
