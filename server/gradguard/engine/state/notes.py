"""What a path remembers until its end: grad modes, values that stay, reads of the host, calls of modules."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from gradguard.engine.domain.events import DeviceUse, GraphKept, HostRead
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Node, Place, Tensor, Tri, Write
from gradguard.engine.domain.values import ClassV, Instance, Reading, Value


@dataclass(slots=True, eq=False)
class Marks:
    """What has happened on a path and cannot be read off any value."""

    functions: list[tuple[ClassV, Instance]] = field(default_factory=list)
    """The program's own `torch.autograd.Function`s that recorded something, and the context of each."""
    ran_function: bool = False
    """The `forward` of such a Function ran."""
    functions_changed: bool = False
    """A function was given a mode, or compiled, after its definition."""
    set_grad: Modes | None = None
    """The modes as a statement set them that outlives its function."""
    by_name: bool = False
    """Names are read that do not stand in the text: `globals()`, `eval`."""
    lent_names: set[str] = field(default_factory=set)
    """Names that are read by a function which escaped."""
    differentiates: bool = False
    """A function that escaped calls backward, or may."""
    network_lent: bool = False
    """A network escaped to code that is not read, so any later call of such code may differentiate it."""
    cleared: bool = False
    """Gradients of unknown tensors were dropped."""
    evaluates: bool = False
    """A network was put into evaluation mode."""
    bare_no_grad: Place | None = None
    """Where `torch.no_grad()` stands as a statement, which does nothing."""

    @property
    def only_here(self) -> bool:
        """Whether some of it happened to this path alone, so that another path cannot take it over."""
        return bool(self.functions or self.ran_function or self.functions_changed or self.set_grad)

    def add(self, more: Marks) -> None:
        """Add what happened elsewhere, as if it had happened here."""
        self.by_name = self.by_name or more.by_name
        self.lent_names |= more.lent_names
        self.differentiates = self.differentiates or more.differentiates
        self.network_lent = self.network_lent or more.network_lent
        self.cleared = self.cleared or more.cleared
        self.evaluates = self.evaluates or more.evaluates
        self.bare_no_grad = more.bare_no_grad or self.bare_no_grad


@dataclass(slots=True, eq=False)
class Kept:
    """A value that holds the graph of an earlier iteration when an iteration ends."""

    group: list[Tensor]
    """The value, or all values that the statement put away."""
    order: int
    event: GraphKept
    old: list[Node]
    trains: bool
    """The loop trains or evaluates, so values that leave it are not differentiated later."""
    loop: Loop


@dataclass(slots=True, eq=False)
class Read(Reading):
    """A wait of the host, and how the number was used that was read."""

    event: DeviceUse = field(kw_only=True)
    loop: Loop | None = field(kw_only=True)
    node: Node | None = field(kw_only=True)
    """The node that recorded the tensor."""
    order: int = field(kw_only=True)
    iteration: int = field(default=0, kw_only=True)
    """The pass of the loop."""
    data: Hashable = field(default=None, kw_only=True)
    """What is copied: equal where it is the same again."""

    @property
    def verdict(self) -> DeviceUse:
        """The event, at the end of the path."""
        if not isinstance(self.event, HostRead):
            return self.event
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
    """The loops around it, except loops of suspended generators."""
    caller: Place | None
    """The call in the function of the innermost loop that led to it; None where it stands there itself."""
    text: str


@dataclass(slots=True, eq=False)
class Rewritten:
    """A module call that wrote one of its inputs in place."""

    call: Place
    write: Write
    text: str
    depth: int
    version: int
