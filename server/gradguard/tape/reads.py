"""Host reads: places where Python waits for the device."""

from __future__ import annotations

import ast

from gradguard.tape.domain import Tensor
from gradguard.tape.events import HostRead
from gradguard.tape.frame import Frame, Loop
from gradguard.tape.machine import source_text
from gradguard.tape.run import Run


def host_read(run: Run, frame: Frame, node: ast.AST, how: str, tensor: Tensor, *, implicit: bool) -> None:
    """Record that the host reads `tensor` here."""
    loop = step_loop(run)
    guarded = any(guard.periodic or guard.data for guard in run.guards[loop.guards if loop else 0 :])
    device = device_of(run, tensor)
    run.emit(
        HostRead(
            run.place(frame, node),
            loop is not None and device == "accelerator",
            how,
            source_text(node),
            loop.place if loop else None,
            guarded,
            implicit,
            device,
            per=_per(run, loop),
            before_backward=tensor.requires_grad is True,
            compiled=run.compiled > 0,
            statement=run.statement,
        )
    )


def step_loop(run: Run) -> Loop | None:
    """The innermost loop around; it counts as the step loop when no other loop runs inside its body."""
    return run.loops[-1] if run.loops else None


def _per(run: Run, loop: Loop | None) -> str:
    if loop is None:
        return "step"
    if any(one.over == "parameters" for one in run.loops):
        return "parameter"
    if loop.over == "tensor":
        return "element"
    return "step"


def device_of(run: Run, tensor: Tensor) -> str:
    """Device of a tensor as far as it matters: `accelerator`, `cpu` or `unknown`."""
    if tensor.device is not None:
        return tensor.device
    return "unknown"
