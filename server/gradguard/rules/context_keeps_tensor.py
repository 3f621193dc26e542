"""GG208: a custom Function keeps an output or input on its `ctx` instead of in `save_for_backward`."""

from __future__ import annotations

from gradguard.engine.domain.events import ContextKeeps, Event
from gradguard.findings import Finding
from gradguard.rules.model import INFORMATION, WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """At the statement that sets the attribute."""
    if not isinstance(event, ContextKeeps):
        return None
    attribute, name = quoted(event.attribute), f" {quoted(event.text)}" if event.text else ""
    if event.what == "view":
        message = f"{attribute} keeps a view of an output of `{event.function}`: a cycle that nothing ends"
    elif event.what == "output":
        output = f"the output{name}" if name else f"an output of `{event.function}`"
        message = f"{attribute} keeps {output}: a cycle that only the garbage collector ends"
    else:
        kept = f"the input{name}" if name else f"an input of `{event.function}`"
        message = f"{attribute} keeps {kept}: backward does not free it, and writes to it go unnoticed"
    return context.finding(event, message, severity=INFORMATION if event.what == "input" else WARNING)


RULE = Rule(
    "GG208",
    "context-keeps-tensor",
    "autograd.Function that keeps an output or input as an attribute of `ctx` instead of in `save_for_backward`",
    (ContextKeeps,),
    render,
)
