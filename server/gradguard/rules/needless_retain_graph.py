"""GG206: `retain_graph=True` without a second backward."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, RetainGraph
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, WARNING, Context, Rule


def render(context: Context, event: Event) -> Finding | None:
    """At the backward that retains."""
    if not isinstance(event, RetainGraph):
        return None
    kept = "of every pass" if event.grows else "longer than needed"
    return context.finding(
        event,
        f"`retain_graph=True` without a later backward keeps activations alive {kept}",
        severity=WARNING if event.grows else INFORMATION,
    )


RULE = Rule(
    "GG206",
    "needless-retain-graph",
    "`retain_graph=True` with no second backward through that graph",
    (RetainGraph,),
    render,
)
