"""GG112: a gradient kept by reference and overwritten later."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, GradientAlias
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The statement that takes the reference."""
    if not isinstance(event, GradientAlias):
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} keeps the gradient itself, which is overwritten in place later",
        severity=WARNING,
        related=[(event.overwritten, "overwritten in place here")],
    )


RULE = Rule(
    "GG112",
    "gradient-alias",
    "`p.grad` kept by reference and later overwritten in place",
    (GradientAlias,),
    render,
)
