"""Parameters that never learn: cut off on their way to a loss after which their optimizer makes a step."""

from __future__ import annotations

import ast

from gradguard.engine.domain.events import BrokenGraph
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Instance, tensors_in
from gradguard.engine.state.run import Run


def owned(optimizer: Instance) -> list[Tensor]:
    groups = optimizer.attributes.get("param_groups")
    return tensors_in(groups) if groups is not None else []


DELIBERATE = frozenset({"no_grad", "detach", "data"})
"""Ways to leave the graph on purpose: a mistake only where an optimizer waits for the gradient."""


def finish(run: Run) -> None:
    """Parameters that no backward ever reaches, cut off on their way to a loss after which their optimizer makes a step."""
    stepped: dict[ast.AST, set[int]] = {}
    for optimizer, loss_at in run.stepped:
        stepped.setdefault(loss_at, set()).update(p.number for p in owned(optimizer))
    reported: set[tuple[str, ast.AST]] = set()
    for cut, loss in run.lost.items():
        meant = not run.optimizers and cut.how in DELIBERATE
        starved = [
            t
            for t in cut.leaves.values()
            if (t.number in stepped.get(loss.node, ()) or not (run.optimizers or meant))
            and t.number not in run.accumulated
            and not _written_otherwise(t)
        ]
        key = (cut.how, cut.place.node)
        if not starved or key in reported or any(t.requires_grad is not True for t in starved):
            continue
        reported.add(key)
        made = frozenset(t.created.node for t in starved)
        run.emit(BrokenGraph(cut.place, True, cut.how, cut.text, loss, False, made))


def _written_otherwise(parameter: Tensor) -> bool:
    """Whether something else than a step moves a parameter in a loop, or code that is not read may: a target network."""
    return parameter.memory.held or any(
        write.op != "step" and write.iterations for write in parameter.memory.writes
    )
