"""GG205: a value that should train is cut off from the graph and flows back into a loss."""

from __future__ import annotations

from gradguard.engine.domain.events import BrokenGraph, Event
from gradguard.findings import Finding
from gradguard.rules.model import ERROR, WARNING, Context, Rule, quoted

_HOW = {
    "no_grad": "no_grad here cuts off parameters that the optimizer should train",
    "checkpoint": "this checkpoint trains nothing: with `use_reentrant=True` one of its inputs has to require grad",
    "tensor": "{text} copies values out of the graph: what computes them does not train",
    "detach": "{text} cuts off parameters that the optimizer should train",
    "data": "{text} cuts off parameters that the optimizer should train",
}


_LOSS = "the loss that does not train it"
_BACKWARD = {"flag": "this backward gives a gradient to the loss itself alone"}


def render(context: Context, event: Event) -> Finding | None:
    """At the cut; at the backward where nothing else is known."""
    if not isinstance(event, BrokenGraph):
        return None
    if event.how == "no-graph":
        message = f"backward of {quoted(event.text)}, which has no graph: nothing in it requires grad"
    elif event.how == "flag":
        message = (
            f"{quoted(event.text, 'this')} has no graph: with `requires_grad` its backward trains nothing"
        )
    else:
        pattern = _HOW.get(
            event.how, "{text} leaves the graph and flows back into a loss: what computes it does not train"
        )
        message = pattern.format(text=quoted(event.text, "this"))
    return context.finding(
        event,
        message,
        severity=ERROR if event.raises else WARNING,
        related=[(event.loss if event.loss is not event.place else None, _BACKWARD.get(event.how, _LOSS))],
        notes=("element 0 of tensors does not require grad and does not have a grad_fn",)
        if event.raises
        else (),
    )


RULE = Rule(
    "GG205",
    "broken-graph",
    "a value that should train is cut off (`.item()`, `.data`, `torch.tensor`, no_grad, ...) and flows back into a loss",
    (BrokenGraph,),
    render,
)
