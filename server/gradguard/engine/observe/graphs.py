"""Questions about a recorded graph: its nodes, its leaves, and where values left it.

Each goes through the whole graph, or through all cuts behind a value, and counts that as work of the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradguard.engine.domain.keys import LOADER, root
from gradguard.engine.domain.tensors import NO_CUTS, UNKNOWN_SOURCE, Cut, Node, Place, Tensor
from gradguard.engine.domain.values import CONTAINERS, ArrayV, Sym, Value, inside
from gradguard.engine.state.run import Run

VISIT = 2
"""Units of work that a node takes to be gone through."""


def graph(run: Run, *nodes: Node) -> list[Node]:
    """Every node from these on, each once. Raises BudgetExceeded."""
    found: dict[Node, None] = {}
    stack = [*nodes]
    while stack:
        one = stack.pop()
        if one in found:
            continue
        found[one] = None
        stack.extend(edge.node for edge in one.edges if edge.node is not None)
    run.work(VISIT * len(found))
    return list(found)


def leaves_of(run: Run, tensor: Tensor) -> dict[int, Tensor]:
    """Leaves that a backward from `tensor` would reach. Raises BudgetExceeded."""
    if tensor.node is None:
        return {tensor.number: tensor} if tensor.requires_grad is not False else {}
    found: dict[int, Tensor] = {}
    for node in graph(run, tensor.node):
        for edge in node.edges:
            if edge.node is None:
                found[edge.tensor.number] = edge.tensor
    run.work(len(found))
    return found


def cut_off(run: Run, tensors: Iterable[Tensor], place: Place, how: str, text: str) -> frozenset[Cut]:
    """A new cut after `tensors`, together with the cuts they already carry. Raises BudgetExceeded."""
    cuts: set[Cut] = set()
    leaves: dict[int, Tensor] = {}
    for tensor in tensors:
        cuts |= tensor.cuts
        if tensor.requires_grad is not False:
            leaves.update(leaves_of(run, tensor))
    if leaves:
        cuts.add(Cut(place, how, text, leaves))
    run.work(len(cuts))
    return frozenset(cuts)


def cuts_in(run: Run, value: Value) -> frozenset[Cut]:
    """Where the numbers in a value left a graph. Raises BudgetExceeded."""
    cuts = NO_CUTS.union(*map(_cuts, inside(value))) if type(value) in CONTAINERS else _cuts(value)
    run.work(len(cuts))
    return cuts


UNKNOWN_ONLY = frozenset({UNKNOWN_SOURCE})


def may_bring_graph(value: Sym) -> bool:
    """Whether an unknown value may be a tensor that requires grad, whatever it is taken for."""
    return value.kind in ("any", "tensor") and root(value.key)[0] != LOADER


def _cuts(value: Value) -> frozenset[Cut]:
    if isinstance(value, Tensor):
        return value.cuts
    if isinstance(value, Sym):
        return value.cuts | UNKNOWN_ONLY if may_bring_graph(value) else value.cuts
    if isinstance(value, ArrayV):
        return value.cuts | (value.memory_of.cuts if value.memory_of is not None else NO_CUTS)
    return NO_CUTS
