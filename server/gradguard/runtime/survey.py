"""Which nodes one run of the autograd engine will execute: a walk over the real graph before it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from gradguard.runtime.graph import NodeRecord, leaf_of, node_of, record_of


@dataclass(slots=True)
class Survey:
    """The part of a graph that one run will execute.

    nodes are held for the survey only; leaves are the tensors whose gradient it computes, with the node that uses them.
    """

    nodes: list[Any] = field(default_factory=list)
    records: list[NodeRecord] = field(default_factory=list)
    leaves: list[tuple[Any, NodeRecord | None]] = field(default_factory=list)


def survey(roots: Any, inputs: Any) -> Survey:
    """Walks from the roots to the leaves; with `inputs`, only what lies on a path to one of them."""
    result = Survey()
    start = [root_node(root) for root in ((roots,) if isinstance(roots, torch.Tensor) else roots)]
    order: list[Any] = []
    seen: set[Any] = set()
    following: dict[Any, Any] = {}
    pending = [node for node in start if node is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        before = following[node] = node.next_functions
        for other, _ in before:
            if other is not None and other not in seen:
                pending.append(other)
    if inputs:
        order = _towards(order, inputs)
    for node in order:
        record = record_of(node)
        if record is not None:
            result.records.append(record)
        for other, _ in following[node]:
            leaf = leaf_of(other)
            if leaf is not None:
                result.leaves.append((leaf, record))
    result.nodes = order
    return result


def root_node(root: Any) -> Any:
    if isinstance(root, torch.Tensor):
        return node_of(root)
    return getattr(root, "node", None)


def _towards(order: list[Any], inputs: Any) -> list[Any]:
    wanted_nodes: set[Any] = set()
    wanted_leaves: set[int] = set()
    for given in (inputs,) if isinstance(inputs, torch.Tensor) else inputs:
        node = root_node(given)
        if node is not None:
            wanted_nodes.add(node)
        else:
            wanted_leaves.add(id(given))
    before: dict[Any, list[Any]] = {}
    reached: set[Any] = set()
    pending: list[Any] = []
    for node in order:
        for following, _ in node.next_functions:
            if following is None:
                continue
            before.setdefault(following, []).append(node)
            leaf = leaf_of(following)
            if following in wanted_nodes or (leaf is not None and id(leaf) in wanted_leaves):
                pending.append(node)
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending.extend(before.get(node, ()))
    return [node for node in order if node in reached]
