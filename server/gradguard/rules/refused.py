"""Words and fixes for writes that torch refuses at their statement."""

from __future__ import annotations

from gradguard.engine.domain.events import RefusedWrite
from gradguard.findings import Finding
from gradguard.rules.model import ERROR, Context, quoted

_WHY = {
    "leaf": "a leaf that requires grad",
    "view-of-leaf": "a view of a leaf that requires grad",
    "multi-view": "one of several views made by `{detail}`",
    "no-grad-view": "a view made under no_grad",
    "stale-view": "which makes the views of `{detail}` unusable",
    "detached-view": "a view made by `{detail}`",
    "expanded": "expanded memory, where elements overlap",
    "overlap": "while it reads part of the same memory",
    "inference": "made under inference_mode",
    "function-output": "an output that `{detail}` wraps in a view",
}
_SOURCE = {
    "leaf": "the leaf is made here",
    "view-of-leaf": "the leaf is made here",
    "multi-view": "the views are made here",
    "no-grad-view": "the view is made here",
    "stale-view": "the view that is used later is made here",
    "detached-view": "the view is made here",
    "expanded": "expanded here",
    "overlap": "read here",
    "inference": "made under inference_mode here",
    "function-output": "returned here",
}
TORCH_SAYS = {
    "leaf": "a leaf Variable that requires grad is being used in an in-place operation",
    "view-of-leaf": "a view of a leaf Variable that requires grad is being used in an in-place operation",
    "multi-view": "This view is the output of a function that returns multiple views",
    "no-grad-view": "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
    "stale-view": "is a view and its base or another view of its base has been modified inplace",
    "detached-view": "Can't detach views in-place. Use detach() instead.",
    "expanded": "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
    "overlap": "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location",
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
        notes=(TORCH_SAYS[event.reason],),
    )
