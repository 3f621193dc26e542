"""Host reads: places where Python waits for the device."""

from __future__ import annotations

import ast

from gradguard.tape.domain import Tensor
from gradguard.tape.events import HostRead
from gradguard.tape.frame import Frame, Loop
from gradguard.tape.machine import source_text
from gradguard.tape.run import Run

PER_STEP = frozenset({
    "forward", "training_step", "validation_step", "test_step", "train_step", "compute_loss", "step", "update", "loss",
})  # fmt: skip
"""Methods that somebody calls once a step."""


def host_read(run: Run, frame: Frame, node: ast.AST, how: str, tensor: Tensor, *, implicit: bool) -> None:
    """Note that the host reads `tensor` here; whether it counts is known when the loop around it has ended."""
    loop = run.loops[-1] if run.loops else None
    per = _per(run, loop, frame)
    if per == "once" and not run.compiled:
        return
    guarded = any(guard.periodic or guard.data for guard in run.guards[loop.guards if loop else 0 :])
    event = HostRead(
        run.place(frame, node),
        tensor.device == "accelerator",
        how,
        source_text(node),
        loop.place if loop else None,
        guarded,
        implicit,
        tensor.device or "unknown",
        per=per,
        before_backward=tensor.requires_grad is True and tensor.node is not None and not tensor.node.walks,
        compiled=run.compiled > 0,
        statement=run.statement,
    )
    run.reads.append((event, loop))


def _per(run: Run, loop: Loop | None, frame: Frame) -> str:
    if any(one.over == "parameters" for one in run.loops):
        return "parameter"
    if loop is None:
        function = run.functions[0] if run.functions else None
        stepwise = run.depth > 0 or (
            function is not None and function.owner is not None and function.name in PER_STEP
        )
        return "call" if stepwise else "once"
    return "element" if loop.over == "tensor" else "step"
