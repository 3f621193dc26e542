"""Words and fixes for writes that torch refuses at their statement."""

from __future__ import annotations

import ast

from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.model import ERROR, Context, quoted
from gradguard.tape.events import RefusedWrite

_WHY = {
    "leaf": "a leaf that requires grad",
    "view-of-leaf": "a view of a leaf that requires grad",
    "multi-view": "one of several views made by `{detail}`",
    "no-grad-view": "a view made under no_grad",
    "expanded": "expanded memory, where elements overlap",
    "inference": "made under inference_mode",
    "function-output": "an output that `{detail}` wraps in a view",
}
_SOURCE = {
    "leaf": "the leaf is made here",
    "view-of-leaf": "the leaf is made here",
    "multi-view": "the views are made here",
    "no-grad-view": "the view is made here",
    "expanded": "expanded here",
    "inference": "made under inference_mode here",
    "function-output": "returned here",
}
TORCH_SAYS = {
    "leaf": "a leaf Variable that requires grad is being used in an in-place operation",
    "view-of-leaf": "a view of a leaf Variable that requires grad is being used in an in-place operation",
    "multi-view": "This view is the output of a function that returns multiple views",
    "no-grad-view": "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
    "expanded": "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
    "inference": "Inplace update to inference tensor outside InferenceMode is not allowed",
    "function-output": "Output 0 is a view and is being modified inplace",
}


def render_refused(context: Context, event: RefusedWrite) -> Finding:
    """One finding for a refused write."""
    why = _WHY[event.reason].format(detail=event.detail)
    return context.finding(
        event,
        f"in-place `{event.write.op}` on {quoted(event.write.text)}, {why}",
        severity=ERROR,
        related=[(event.source, _SOURCE[event.reason])],
        fixes=_fixes(context, event),
        notes=(TORCH_SAYS[event.reason],),
    )


def _fixes(context: Context, event: RefusedWrite) -> list[FixPlan]:
    write = event.write
    plans: list[FixPlan] = []
    statement = write.statement
    if event.reason in ("leaf", "view-of-leaf"):
        plans += context.plan(
            "no-grad", "Update it under `torch.no_grad()`", Applicability.UNSAFE, statement, write.place
        )
    if (
        write.kind in ("op", "augmented")
        and isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign))
        and event.reason != "leaf"
    ):
        plans += context.plan(
            "out-of-place",
            f"Write {quoted(write.text)} out of place",
            Applicability.UNSAFE,
            statement,
            write.place,
            op=write.op,
            name=write.text,
        )
    if event.source is not None and event.reason in (
        "expanded",
        "multi-view",
        "no-grad-view",
        "view-of-leaf",
    ):
        plans += context.plan(
            "clone-source",
            "Clone it where it is made",
            Applicability.UNSAFE,
            event.source.node,
            event.source,
            reason=event.reason,
        )
    return plans
