"""The tape's own objects: memory, versions, tensors, nodes and what nodes keep.

They mirror libtorch one to one, so that a rule can be checked against torch by reading:

    Memory    c10::Storage            who shares these bytes, and every write to them
    Version   VariableVersion         the counter that a base, its views and `detach()` share
    Tensor    TensorImpl + AutogradMeta
    Node      autograd::Node          a recorded op with its edges and saved variables
    Saved     SavedVariable           a tensor kept at a version

Facts that cannot be known are None: `requires_grad` is True, False or None (maybe), likewise `contiguous`,
`expanded` and `leaf`. Example: the argument of a `forward` that this file never calls has requires_grad None; a
node recorded because of it is not `certain`, and neither is anything concluded from that node.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

Tri = bool | None
"""True is yes, False is no, None is maybe."""


def either(*facts: Tri) -> Tri:
    """Three-valued or."""
    return True if True in facts else (None if None in facts else False)


def both(*facts: Tri) -> Tri:
    """Three-valued and."""
    if False in facts:
        return False
    return None if None in facts else True


@dataclass(slots=True, eq=False)
class Place:
    """A node of some file's tree: where something happened. Never changed; not frozen because that makes it slow to make."""

    path: str
    node: ast.AST

    @property
    def line(self) -> int:
        """Line of the node, from 1."""
        line: int = getattr(self.node, "lineno", 1)
        return line


@dataclass(slots=True, eq=False)
class Write:
    """One in-place write to some memory."""

    place: Place
    op: str
    """As spelled: `add_`, `+=`, `[...] =`, `step`."""
    target: Tensor
    counted: bool = True
    certain: bool = True
    kind: str = "op"
    """`op`, `setitem`, `augmented`, `step`, `out`, `numpy`, `data`, `statistics`."""
    statement: ast.stmt | None = None
    after: int = 0
    """Version after the write, of the counter it went through."""
    via: str = ""
    """Source text of the written expression."""
    order: int = 0
    iterations: tuple[tuple[int, int], ...] = ()
    """(loop id, iteration) of every loop around it, outermost first."""
    instance: Hashable = None
    """See `Run.instance`."""
    maker: Place | None = None
    """Where the module that writes was made."""
    idle: bool = False
    """The memory holds the written numbers already, so the write changes nothing."""


@dataclass(slots=True, eq=False)
class Memory:
    """Bytes that several tensors may share."""

    writes: list[Write] = field(default_factory=list)
    numpy: bool = False
    shared: bool = False
    """Made by definitions that all entries of a file share."""
    outside: bool = False
    """Came from a caller, which may hold it too."""
    saved: bool = False
    """A node has saved a tensor of it, so the node's backward may notice a write."""
    held: bool = False
    """Escaped: code that is not read got a tensor of it, or its address, and may look at it later."""
    kept: Place | None = None
    """For the memory of a gradient: where the program stored that gradient by reference."""


@dataclass(slots=True, eq=False)
class Version:
    """The version counter of a base and its views."""

    value: int = 0
    writes: list[Write] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Saved:
    """A tensor kept by a node for its backward."""

    node: Node
    role: str
    tensor: Tensor
    version: int
    memory_mark: int
    """Number of writes to the memory at saving time."""
    certain: bool = True
    why: str = ""
    text: str = ""
    expr: ast.AST | None = None
    read: bool = True
    """False where backward checks the version but does not use the numbers."""
    serves: tuple[Tensor, ...] = ()
    """For a composite node: the inputs whose gradients need this tensor, where known."""
    likely: bool = True
    """False if the tensor is saved only for the sake of an unknown value, which may as well be a number."""
    counted: bool = True
    """Whether backward compares its version, so that torch notices a write."""
    reported: bool = False


@dataclass(slots=True, eq=False)
class Edge:
    """From a node to where one input's gradient goes: another node, or a leaf."""

    tensor: Tensor
    node: Node | None
    sure: bool = True
    """False if it is unknown whether the gradient goes there."""


@dataclass(slots=True, eq=False)
class Node:
    """A recorded operation."""

    op: str
    place: Place
    order: int
    edges: list[Edge] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    frees: Tri = False
    """Whether the first backward frees a tensor that the node saved, so that a second backward raises."""
    certain: bool = True
    likely: bool = True
    """For a node that is not certain: recorded by convention, such as an op of a `forward` on its arguments."""
    freed: Place | None = None
    walked: Place | None = None
    """The last backward that went through it."""
    walks: int = 0
    """Program order of the last backward that went through it; 0 before the first."""
    left: int = 0
    """Program order at which a value over it left the analysed code, where a caller may differentiate it, or was
    differentiated towards other inputs."""
    depth: int = 0
    """Number of module calls that were running when it was recorded."""
    iterations: tuple[tuple[int, int], ...] = ()
    opaque: bool = False
    """Stands for a whole unknown network."""
    composite: bool = False
    """Stands for what a function made of several ops recorded: a backward may run a part of it."""
    barren: bool = False
    """Passes no gradient to its inputs: a backward visits the nodes behind it, but their leaves receive nothing."""
    calls: tuple[Place, ...] = ()
    """Call sites from the outermost to the innermost, at recording."""
    assumed: bool = False
    """Recorded in a pass of a loop that is only assumed to be."""
    doubled: bool = False
    """Made by `create_graph`: whatever this node saves is saved by the nodes of the first graph, too."""


@dataclass(slots=True, eq=False)
class Cut:
    """A place where a value left the graph: `.item()`, `detach`, an op under no_grad, ..."""

    place: Place
    how: str
    text: str
    leaves: dict[int, Tensor] = field(default_factory=dict)
    """Leaves that would have got a gradient through it."""


NO_CUTS: frozenset[Cut] = frozenset()
UNKNOWN_SOURCE = Cut(Place("", ast.Pass()), "unknown", "")
"""Among the cuts of a value: something that nothing is known of went into it and may have brought a graph.

What an unknown iterable gives is taken for data, which does not require grad; that is no proof that nothing does.
"""


class Tensor:
    """One tensor object. `base` is set for differentiable views only (not for `detach()`)."""

    __slots__ = (
        "alias_sure",
        "attributes",
        "base",
        "bindings",
        "bound_at",
        "bound_name",
        "contiguous",
        "copied",
        "counter",
        "created",
        "cuts",
        "device",
        "dtype",
        "expanded",
        "flagged",
        "from_numpy",
        "function_output",
        "grad",
        "grad_owner",
        "hooks",
        "inference",
        "leaf",
        "likely",
        "made_no_grad",
        "made_of",
        "memory",
        "multi",
        "node",
        "number",
        "offset",
        "own_counter",
        "pageable",
        "parameter",
        "region",
        "requires_grad",
        "retains_grad",
        "shape",
        "source",
        "stored_at",
        "stored_inside",
        "strides",
        "sure",
        "view_op",
        "view_sure",
        "view_version",
    )

    def __init__(
        self, number: int, created: Place, *, memory: Memory | None = None, counter: Version | None = None
    ) -> None:
        self.number = number
        self.created = created
        self.memory = memory if memory is not None else Memory()
        self.counter = counter if counter is not None else Version()
        self.base: Tensor | None = None
        self.view_op = ""
        self.view_version = 0
        self.multi = False
        self.made_no_grad = False
        self.expanded: Tri = False
        self.requires_grad: Tri = False
        self.flagged: Place | None = None
        """The statement that made it require grad, where it had no graph until then."""
        self.likely = False
        """If `requires_grad` is unknown: True by convention, as for the argument of a `forward`."""
        self.leaf: Tri = True
        self.node: Node | None = None
        self.inference: Tri = False
        self.own_counter = False
        """Of an inference tensor: `.data` or `detach()` outside of inference mode gave it a counter, so it may be written."""
        self.device: str | None = None
        self.made_of = ""
        """Of what a factory has made, which could have made it on another device: `number`, `values` or `size`."""
        self.pageable: Place | None = None
        """The factory or loader that has made it without `pin_memory`: a copy to a device waits."""
        self.dtype: str | None = None
        self.shape: tuple[object, ...] | None = None
        self.strides: tuple[int, ...] | None = None
        self.offset: int | None = 0
        """Position of its first element in its memory, counted in elements; None if unknown."""
        self.contiguous: Tri = True
        self.parameter = False
        self.grad: object = None
        self.grad_owner: Tensor | None = None
        self.hooks: tuple[object, ...] = ()
        """Each a `Hook`. Another tuple for each change, so that whoever has noted the old one can put it back."""
        self.attributes: dict[str, object] | None = None
        self.bound_at: Place | None = None
        self.bindings: list[tuple[int, Place, str]] = []
        """(program order, statement, name) of its latest bindings, oldest first."""
        self.bound_name = ""
        self.alias_sure = True
        """False where sharing its base's memory is only possible (`reshape` of unknown strides)."""
        self.view_sure = True
        """False where it may be the very tensor that it seems to be a view of (`atleast_2d`)."""
        self.sure = True
        """False where it is only inferred that this is a tensor at all."""
        self.source = ""
        """`data` for what a loader gave, `argument` for what a caller gave, `detach`, `data_attr`, `item`, ..."""
        self.function_output = ""
        self.from_numpy = False
        self.stored_at: Place | None = None
        """The statement that put it into a container."""
        self.stored_inside = False
        """That statement stored an object that holds the tensor, not the tensor itself."""
        self.cuts: frozenset[Cut] = NO_CUTS
        """The cuts that its value came through."""
        self.retains_grad = False
        self.region: Tensor | None = None
        """The tensor of the very same elements that `detach()` or `.data` was taken of; None where it was not."""
        self.copied: tuple[Tensor, int] | None = None
        """For an unused copy: the tensor it was copied from, and the number of writes to that tensor's memory by then."""

    @property
    def root(self) -> Tensor:
        """The base of a view, or the tensor itself."""
        return self.base if self.base is not None else self

    @property
    def elements(self) -> Tensor:
        """Stands for the elements it has: the same for a tensor and what `detach()` and `.data` give of it."""
        return self.region if self.region is not None else self

    @property
    def floating(self) -> Tri:
        """Whether its numbers are floating point or complex."""
        if self.dtype is None:
            return None
        return self.dtype.startswith(("float", "bfloat", "complex", "half", "double"))
