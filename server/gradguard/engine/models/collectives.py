"""`torch.distributed`: collectives that write what they are given.

Seen with torch 2.13 on gloo: those in `UNSEEN` raise no version, so backward reads what other ranks sent and says nothing;
those in `COUNTED` raise it. The functional forms (`torch.distributed.nn.functional`) give new tensors.
"""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import Frame, Value, tensors_in
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run

MODELS = Registry()

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


def _spelled(node: ast.AST) -> ast.AST:
    return node.args[0] if isinstance(node, ast.Call) and node.args else node


for _name in UNSEEN:
    MODELS.torch_function(f"torch.distributed.{_name}")(_unseen)
for _name in COUNTED:
    MODELS.torch_function(f"torch.distributed.{_name}")(_counted)
