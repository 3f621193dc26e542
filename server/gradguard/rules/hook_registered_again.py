"""GG209: a hook is registered anew by every pass or call."""

from __future__ import annotations

from gradguard.engine.domain.events import Event, HookAgain
from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted


def render(context: Context, event: Event) -> Finding | None:
    """At the registration."""
    if not isinstance(event, HookAgain):
        return None
    name = quoted(event.text)
    if event.loop is None:
        message = f"every call of `{event.method}` registers another hook on {name} and none is removed"
    elif event.scales:
        message = f"every pass registers another hook on {name}: its gradient goes through all of them"
    else:
        message = f"every pass registers another hook on {name}, none is removed, and all of them run"
    return context.finding(
        event,
        message,
        severity=WARNING,
        related=[(event.loop, "every pass of this loop registers one more")],
    )


RULE = Rule(
    "GG209",
    "hook-registered-again",
    "a hook that every pass of a loop or call of a method registers once more and nobody removes",
    (HookAgain,),
    render,
)
