"""Host reads: places where Python waits for the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from dataclasses import replace

from gradguard.engine.domain.events import DeviceCopy, DeviceUse, HostRead
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.spelling import source_text
from gradguard.engine.domain.tensors import Node, Tensor
from gradguard.engine.domain.values import Frame, Reading
from gradguard.engine.state.notes import Read
from gradguard.engine.state.run import Run

PER_STEP = frozenset({
    "forward", "training_step", "validation_step", "test_step", "train_step", "compute_loss", "step", "update", "loss",
})  # fmt: skip
"""Methods that somebody calls once a step."""


def host_read(
    run: Run,
    frame: Frame,
    node: ast.AST,
    how: str,
    tensor: Tensor,
    *,
    implicit: bool,
    text: str = "",
    checks: bool = False,
    mixed: bool = False,
) -> Read | None:
    """Note that the host reads `tensor` here; whether it counts is known when the loop around it has ended.

    text: what is read, where the place does not say it.
    """
    run.trail.act()
    loop = run.loops[-1] if run.loops else None
    per = how_often(run, loop)
    if per == "once" and not run.compiled:
        return None
    event = HostRead(
        run.place(frame, node),
        tensor.device == "accelerator",
        how,
        text or source_text(node),
        loop.place if loop else None,
        guarded(run, loop),
        tensor.device or "unknown",
        per,
        run.compiled > 0,
        run.statement,
        implicit=implicit,
        checks=checks,
        mixed=mixed,
    )
    return noted(run, event, loop, node=tensor.node)


def noted(
    run: Run, event: DeviceUse, loop: Loop | None, *, node: Node | None = None, data: Hashable = None
) -> Read:
    """Remember a use of the device until the loop around it has ended; node, data: see `Read`."""
    read = Read(len(run.guards), event=event, loop=loop, node=node, order=run.tick(), data=data)
    read.iteration = loop.iteration if loop is not None else 0
    run.reads.append(read)
    return read


def guarded(run: Run, loop: Loop | None) -> bool:
    """Whether a condition inside the loop keeps the running statement from most of its passes."""
    return any(guard.periodic or guard.data for guard in run.guards[loop.guards if loop else 0 :])


def verdicts(run: Run) -> list[DeviceUse]:
    """The reads at the end of a path, and what is copied to the device.

    What the first pass of a loop reads and no later one does unless a condition holds is not read on every pass: there
    the loop's counter, which is known in the first pass, has decided (`if step % 50 == 0`, `if step in (0, 50)`).
    """
    again = {
        (read.event.place.node, read.event.how, read.loop.number)
        for read in run.reads
        if read.loop is not None and read.iteration and not read.event.guarded
    }
    told = []
    same = _copied_again(run.reads)
    for read in run.reads:
        loop, event = read.loop, read.event
        if isinstance(event, DeviceCopy) and not _worth_it(read, same):
            continue
        if loop is not None and loop.inner:
            continue
        event = read.verdict
        if loop is not None and loop.passes > 1:
            seldom = (event.place.node, event.how, loop.number) not in again
            event = replace(event, guarded=event.guarded or seldom, settled=True)
        told.append(event)
    return told


def _copied_again(reads: list[Read]) -> set[tuple[ast.AST, Hashable]]:
    """What two passes of one loop have copied alike, by place and data."""
    first: dict[tuple[int, ast.AST, Hashable], int] = {}
    again = set()
    for read in reads:
        if read.loop is not None and read.data is not None:
            node = read.event.place.node
            if first.setdefault((read.loop.number, node, read.data), read.iteration) != read.iteration:
                again.add((node, read.data))
    return again


def _worth_it(read: Read, same: set[tuple[ast.AST, Hashable]]) -> bool:
    """Whether a copy to the device is one that each of many passes makes for nothing."""
    loop, event = read.loop, read.event
    if loop is None:
        return True
    if not (loop.long or loop.trains or loop.calls):
        return False
    if event.how in ("same", "values"):
        return (event.place.node, read.data) in same
    # That the same tensor is copied again says more.
    return event.how != "pageable" or not any(node is event.place.node for node, _ in same)


def to_numpy(run: Run, frame: Frame, node: ast.AST, tensor: Tensor, *, implicit: bool) -> None:
    """Note that NumPy gets the memory of a tensor: torch refuses that on an accelerator, so it lies on the CPU."""
    if tensor.device == "accelerator":
        host_read(run, frame, node, "numpy", tensor, implicit=implicit)
    else:
        tensor.device = "cpu"


_MAKES = re.compile(r"init.*(weight|param|bias)|(weight|param|bias).*init|reset_parameters")
"""Names of functions that run when a network is made."""


def _while_made(run: Run, loop: Loop | None) -> bool:
    """Whether an object is being made here, and not once in a pass of a loop around it."""
    return run.makes(loop.functions if loop is not None else len(run.functions)) or any(
        _MAKES.search(function.name) for function in run.functions
    )


_SHOWS = frozenset({"__repr__", "__str__", "extra_repr"})
"""Methods that run when a person looks at an object."""


def how_often(run: Run, loop: Loop | None) -> str:
    """What a wait at this moment happens once for; `DeviceUse.per`."""
    if _while_made(run, loop) or any(function.name in _SHOWS for function in run.functions):
        return "once"
    if any(one.over == "parameters" for one in run.loops):
        return "parameter"
    if loop is None:
        function = run.functions[0] if run.functions else None
        stepwise = run.depth > run.entered_at or (
            function is not None
            and function.owner is not None
            and (function.name in PER_STEP or "forward" in function.name)
        )
        return "call" if stepwise else "once"
    return "element" if loop.over == "tensor" else "step"


def named(read: Reading | None) -> None:
    """The number that was read got a name."""
    if read is not None:
        read.named = True


def used(run: Run, read: Reading | None) -> None:
    """The name of a number that was read is used."""
    if read is not None:
        read.uses += 1
        read.guarded += any(guard.periodic for guard in run.guards[read.guards :])
