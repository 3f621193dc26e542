"""Tensors without a graph that pile up on the device: predictions of a whole epoch, of which a count would do.

Nothing but their own memory is kept. On a device that is short; the host has more, and a total needs none.
"""

from __future__ import annotations

import ast
import re

from gradguard.engine.domain.events import DevicePile
from gradguard.engine.domain.spelling import source_text
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Frame, ListV, Value, tensors_in
from gradguard.engine.observe import places_kept, reads
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk

_SMALL = re.compile(r"loss|acc|err|metric|total|norm|count|score|mean|sum|num", re.IGNORECASE)
"""Names of numbers: to collect them on the device and to read them once is right."""


def note(run: Run, frame: Frame, owner: ListV, value: Value, node: ast.AST) -> None:
    """`preds.append(out)` in a loop over data."""
    loop = run.loops[-1] if run.loops else None
    statement = run.statement
    if loop is None or loop.over != "data" or owner.maxlen is not None or statement is None or run.compiled:
        return
    piled = next((tensor for tensor in tensors_in(value) if _piles(tensor)), None)
    given = node.args[0] if isinstance(node, ast.Call) and node.args else node
    text = source_text(given)
    if piled is None or _SMALL.search(text) or _SMALL.search(piled.bound_name):
        return
    if places_kept.container_of(statement) in places_kept.emptied(loop.place.node):
        return
    if _made_inside(owner, loop.place.node):
        return
    run.trail.act()
    device = piled.device or "unknown"
    event = DevicePile(
        run.place(frame, node),
        device == "accelerator",
        "append",
        text,
        loop.place,
        reads.guarded(run, loop),
        device,
        "step",
        False,
        statement,
    )
    reads.noted(run, event, loop)


def _piles(tensor: Tensor) -> bool:
    """Whether it lies on a device, for all that is known, has more than one number, and keeps no graph."""
    alone = tensor.requires_grad is False and tensor.node is None
    return (
        alone and tensor.sure and tensor.device != "cpu" and tensor.shape != () and tensor.made_of != "number"
    )


def _made_inside(owner: ListV, loop: ast.AST) -> bool:
    """Whether each pass of the loop has a list of its own."""
    return owner.made is not None and any(owner.made.node is part for part in walk(loop))
