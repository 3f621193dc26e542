"""Questions about a recorded graph: its nodes, its leaves, and where values left it."""

from __future__ import annotations

from collections.abc import Iterable

from gradguard.tape.domain import Cut, Node, Place, Tensor


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
