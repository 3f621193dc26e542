"""What the tape knows of the tensors at each place, for hovers, hints and lenses.

Besides the mistakes, an analysis for an editor notes the state of each tensor wherever its name was read or bound, so
that a hover needs no further run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gradguard.engine.domain.tensors import Node, Place, Saved, Tensor, Tri

MAX_FACTS = 20_000
"""Facts of each kind that one entry notes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A recorded op that keeps the tensor for backward."""

    op: str
    place: Place
    role: str
    version: int
    certain: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """The state of a tensor at one place. None means unknown."""

    name: str
    version: int
    requires_grad: Tri
    leaf: Tri
    parameter: bool
    recorded_by: str
    """The op whose result it is, empty where none was recorded."""
    view_of: str
    view_op: str
    device: str | None
    dtype: str | None
    origin: str
    """`data`, `argument`, `detach`, ... as the tape has it, empty where it was computed."""
    inference: Tri
    kept: tuple[Kept, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class Walked:
    """One `backward()` call and the saved tensors it went through, each place and role once."""

    place: Place
    kept: tuple[Kept, ...]


@dataclass(slots=True)
class Facts:
    """Facts by node: names that were read, and (statement, name) for names that were bound."""

    read: dict[ast.AST, Fact] = field(default_factory=dict)
    bound: dict[tuple[ast.AST, str], Fact] = field(default_factory=dict)
    walked: dict[ast.AST, Walked] = field(default_factory=dict)

    @staticmethod
    def merged(parts: Iterable[Facts]) -> Facts:
        """The facts of several entries; if two have facts about a place, those of the earlier entry."""
        made = Facts()
        for part in reversed(list(parts)):
            made.read.update(part.read)
            made.bound.update(part.bound)
            made.walked.update(part.walked)
        return made


class Notes:
    """Notes tensors along the paths of one entry. The first path that comes to a place counts."""

    __slots__ = ("_bound", "_read", "facts")

    def __init__(self) -> None:
        self.facts = Facts()
        self._read: dict[ast.AST, Tensor] = {}
        self._bound: dict[tuple[ast.AST, str], Tensor] = {}

    def read(self, node: ast.AST, tensor: Tensor) -> None:
        """A name was read: the tensor is noted as it is now, not as it becomes."""
        known = self.facts.read
        if node not in known and len(known) < MAX_FACTS:
            known[node] = _fact(tensor, getattr(node, "id", ""))
            self._read[node] = tensor

    def bound(self, tensor: Tensor, place: Place, name: str) -> None:
        """A statement gave the tensor a name."""
        known = self.facts.bound
        key = (place.node, name)
        if name and key not in known and len(known) < MAX_FACTS:
            known[key] = _fact(tensor, name)
            self._bound[key] = tensor

    def path_ends(self, nodes: Iterable[Node]) -> None:
        """Add the nodes that save the tensors which this path has noted."""
        keeping: dict[int, dict[tuple[ast.AST, str], Saved]] = {}
        walked: dict[ast.AST, tuple[Place, dict[tuple[ast.AST, str], Kept]]] = {}
        for node in nodes:
            for saved in node.saved:
                keeping.setdefault(id(saved.tensor.memory), {})[node.place.node, saved.role] = saved
                if node.walked is not None:
                    _, places = walked.setdefault(node.walked.node, (node.walked, {}))
                    if (node.place.node, saved.role) not in places:
                        places[node.place.node, saved.role] = _kept(saved)
        for at, (place, places) in walked.items():
            self.facts.walked.setdefault(at, Walked(place, tuple(places.values())))
        # One tuple for all facts about a memory: a copy for each would grow with the product of facts and nodes.
        kept = {memory: tuple(map(_kept, places.values())) for memory, places in keeping.items()}
        for read, tensor in self._read.items():
            if id(tensor.memory) in kept:
                self.facts.read[read] = replace(self.facts.read[read], kept=kept[id(tensor.memory)])
        for key, tensor in self._bound.items():
            if id(tensor.memory) in kept:
                self.facts.bound[key] = replace(self.facts.bound[key], kept=kept[id(tensor.memory)])
        self._read.clear()
        self._bound.clear()


def _kept(saved: Saved) -> Kept:
    return Kept(saved.node.op, saved.node.place, saved.role, saved.version, saved.certain)


def _fact(tensor: Tensor, name: str) -> Fact:
    base = tensor.base
    node = tensor.node
    return Fact(
        name,
        tensor.counter.value,
        tensor.requires_grad,
        tensor.leaf,
        tensor.parameter,
        node.op if node is not None else "",
        (base.bound_name or "another tensor") if base is not None else "",
        tensor.view_op,
        tensor.device,
        tensor.dtype,
        tensor.source,
        tensor.inference,
        (),
        tensor.sure,
    )
