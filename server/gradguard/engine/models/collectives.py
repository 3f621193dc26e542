"""`torch.distributed`: collectives that write what they are given.

Seen with torch 2.13 on gloo: those in `UNSEEN` raise no version, so backward reads what other ranks sent and says nothing;
those in `COUNTED` raise it. The functional forms (`torch.distributed.nn.functional`) give new tensors.

DistributedDataParallel sends the buffers of rank 0 to the other ranks in front of each forward, which no version counts
either. Where a forward has made a buffer anew, of the data of its rank, and a graph keeps it, the next forward before
the backward changes it. Seen with two ranks and torch 2.13: a gradient of 11 in place of 16, and the right one
with one backward for each forward, with a copy of the buffer in the graph, or where buffers are not sent.
"""

from __future__ import annotations

import ast
from collections.abc import Container

from gradguard.engine.autograd import machine
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.modules import modules_of
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import Frame, Instance, Value, tensors_in
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run

MODELS = Registry()

UNSENT = ("broadcast_buffers", "forward_sync_buffers")
"""What keeps DistributedDataParallel from sending buffers, where it is False; the second since torch 2.13."""
SENT = 4
"""Position of the first of them."""

UNSEEN = {
    "all_reduce": "tensor",
    "all_to_all_single": "output",
    "broadcast": "tensor",
    "reduce": "tensor",
    "scatter": "tensor",
}
"""The parameter that each of them writes, its first."""
COUNTED = {
    "all_gather": "tensor_list",
    "all_gather_into_tensor": "output_tensor",
    "all_reduce_coalesced": "tensors",
    "reduce_scatter": "output",
    "reduce_scatter_tensor": "output",
}


def _unseen(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    for target in tensors_in(call.get(0, UNSEEN[call.name])):
        machine.write_unseen(run, call.place, target, call.name, "collective", _spelled(node))
    return run.fresh()


def _counted(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    for target in tensors_in(call.get(0, COUNTED[call.name])):
        machine.write(run, target, call.place, call.name, checked=False)
    return run.fresh()


def buffers_of(module: Instance) -> dict[int, Tensor]:
    """The buffers below a module that its state dict holds, by number."""
    return {
        value.number: value
        for one in modules_of(module)
        for name, value in one.attributes.items()
        if name in one.stored and isinstance(value, Tensor)
    }


def sends_buffers(call: Call) -> bool:
    """Whether the wrapper that is made sends buffers; only what is said to be is taken for False."""
    flags = [call.get(SENT, UNSENT[0], True), call.kwargs.get(UNSENT[1], True)]
    return all(flag is True for flag in flags) and not call.open_args


def send_buffers(run: Run, place: Place, module: Instance, before: Container[int]) -> None:
    """What the wrapper of `module` does in front of a forward. before: numbers of the buffers that were there at first."""
    for number, buffer in buffers_of(module).items():
        if number not in before and _of_this_rank(buffer):
            machine.write_unseen(run, place, buffer, "broadcast", "buffers", buffer.created.node)


def _of_this_rank(buffer: Tensor) -> bool:
    """Whether more than itself, modules and constants went into a buffer: `0.9 * self.scale` is the same on all ranks."""
    names = {one.id for one in ast.walk(buffer.created.node) if isinstance(one, ast.Name)}
    return bool(names - {"self", "torch", "math", "F", "nn"})


def _spelled(node: ast.AST) -> ast.AST:
    return node.args[0] if isinstance(node, ast.Call) and node.args else node


for _name in UNSEEN:
    MODELS.torch_function(f"torch.distributed.{_name}")(_unseen)
for _name in COUNTED:
    MODELS.torch_function(f"torch.distributed.{_name}")(_counted)
