"""GG111: an in-place first op of a sub-module rewrites an input that is read again."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, InputRewritten
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """The call that rewrites."""
    if not isinstance(event, InputRewritten):
        return None
    return context.finding(
        event,
        f"{quoted(event.text)} is rewritten in place by `{event.op}` inside this call and read again afterwards",
        severity=WARNING,
        related=[
            (event.submodule, "written in place here"),
            (event.read_again, "read again here, with other values"),
        ],
    )


RULE = Rule(
    "GG111",
    "input-rewritten-by-submodule",
    "an in-place first op of a sub-module rewrites the block's input, which is read again afterwards",
    (InputRewritten,),
    render,
)
