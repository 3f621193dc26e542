"""What a path remembers until its end: grad modes, values that stay, reads of the host, calls of modules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gradguard.engine.domain.events import GraphKept, HostRead
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.tensors import Node, Place, Tensor, Tri, Write
from gradguard.engine.domain.values import Instance, Reading, Value


@dataclass(slots=True)
class Modes:
    """Grad mode and its neighbours; saved and restored by `with` and decorators."""

    grad: Tri = True
    inference: bool = False
    autocast: bool = False
    why_off: Place | None = None
    """Where grad mode was switched off."""
    saved_hooks: bool = False


@dataclass(slots=True, eq=False)
class Kept:
    """A value that holds the graph of an earlier iteration when an iteration ends."""

    group: list[Tensor]
    """The value, or all values that the statement put away."""
    order: int
    event: GraphKept
    old: list[Node]
    trains: bool
    """The loop trains or evaluates: what leaves it is not differentiated later."""


@dataclass(slots=True, eq=False)
class Read(Reading):
    """A read of the host, and what became of the number."""

    event: HostRead = field(kw_only=True)
    loop: Loop | None = field(kw_only=True)
    node: Node | None = field(kw_only=True)
    """What made the tensor."""
    order: int = field(kw_only=True)

    @property
    def verdict(self) -> HostRead:
        """The event, at the end of the path."""
        waits = self.node is not None and self.node.walks > self.order
        used = "guarded" if self.named and self.uses and self.uses == self.guarded else ""
        return replace(self.event, before_backward=waits, used=used) if waits or used else self.event


@dataclass(slots=True, eq=False)
class ModuleCall:
    """One call of a module from outside any module."""

    place: Place
    module: Instance
    first: int
    last: int
    """Nodes recorded by it, as a range of `Run.nodes`."""
    training: Value
    fed: Tri
    """Whether an input requires grad."""
    loops: tuple[Loop, ...]
    """The loops around it, without those of generators that wait for their next turn."""
    text: str


@dataclass(slots=True, eq=False)
class Rewritten:
    """A module call that wrote one of its inputs in place."""

    call: Place
    write: Write
    text: str
    depth: int
    version: int
