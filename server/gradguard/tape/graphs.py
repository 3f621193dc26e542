"""Questions about a recorded graph: its nodes, its leaves, and where values left it."""

from __future__ import annotations

from collections.abc import Iterable

from gradguard.tape.domain import NO_CUTS, Cut, Node, Place, Tensor
from gradguard.tape.values import ArrayV, ListV, Sym, TupleV, Value


def graph(node: Node | None) -> list[Node]:
    """Every node from here on, each once."""
    found: dict[Node, None] = {}
    stack = [node] if node is not None else []
    while stack:
        one = stack.pop()
        if one in found:
            continue
        found[one] = None
        stack.extend(edge.node for edge in one.edges if edge.node is not None)
    return list(found)


def leaves_of(tensor: Tensor) -> dict[int, Tensor]:
    """Leaves that a backward from `tensor` would reach."""
    if tensor.node is None:
        return {tensor.number: tensor} if tensor.requires_grad is not False else {}
    found: dict[int, Tensor] = {}
    for node in graph(tensor.node):
        for edge in node.edges:
            if edge.node is None:
                found[edge.tensor.number] = edge.tensor
    return found


def cut_off(tensors: Iterable[Tensor], place: Place, how: str, text: str) -> frozenset[Cut]:
    """A new cut after `tensors`, together with the cuts they already carry."""
    cuts: set[Cut] = set()
    leaves: dict[int, Tensor] = {}
    for tensor in tensors:
        cuts |= tensor.cuts
        if tensor.requires_grad is not False:
            leaves.update(leaves_of(tensor))
    if leaves:
        cuts.add(Cut(place, how, text, leaves))
    return frozenset(cuts)


def cuts_in(value: Value) -> frozenset[Cut]:
    """Where the numbers in a value left a graph."""
    if isinstance(value, Tensor):
        return value.cuts
    if isinstance(value, Sym):
        known: frozenset[Cut] = value.facts.get("__cuts__", NO_CUTS)
        return known
    if isinstance(value, ArrayV):
        return value.cuts | (value.memory_of.cuts if value.memory_of is not None else NO_CUTS)
    if isinstance(value, (ListV, TupleV)):
        return NO_CUTS.union(*(cuts_in(item) for item in value.items))
    return NO_CUTS
