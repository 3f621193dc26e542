"""A network that is not read."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.domain import spelling
from gradguard.engine.domain.modules import parameters
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import Instance, Value, tensors_in
from gradguard.engine.state.run import Run


def opaque(run: Run, values: list[Value], place: Place, module: Instance | None, node: ast.AST) -> Tensor:
    """An unknown network: deep, with parameters; its output carries a graph when grad mode is on."""
    made = run.tensor(place)
    inputs = [t for value in values for t in tensors_in(value)]
    made.device = next((t.device for t in inputs if t.device), None)
    made.contiguous = None
    made.sure = False
    trained = parameters(module) if module is not None else []
    run.work(len(inputs) + len(trained))
    if run.modes.grad is not False and (not trained or any(p.requires_grad is not False for p in trained)):
        recorded = machine.record(
            run,
            spelling.source_text(getattr(node, "func", None)) or "module",
            place,
            inputs,
            certain=False,
            frees=None,
        )
        recorded.opaque = True
        made.node, made.requires_grad, made.leaf = recorded, None, None
        recorded.likely = made.likely = True
    return made
