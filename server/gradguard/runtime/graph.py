"""What is known about the real autograd graph while it lives.

A `NodeRecord` stands for one node. It is reachable from the node through a `Mark` in `node.metadata`, a dictionary
that lives inside the node; when the node dies the mark dies and its record is dropped. Nothing here ever holds
a node or a tensor, so memory is freed exactly when it would be without the monitor.
"""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradguard.runtime.frames import Place, RootUse, Site

KEY = "gradguard"
_storage_address: Callable[[Any], int] = torch._C._storage_address
# Attributes that hold a result of the op itself.
AccumulateGrad = torch._C._functions.AccumulateGrad
INPUT = "input"
RESULTS = {"_saved_result", "_saved_output", "_saved_out"}


class SavedTensor:
    """One tensor a node saved: which attribute (empty if out of sight), which memory, at which version.

    writes: later writes to that memory while the node still needed it. snapshot: values before the first write
    that the version counter may not have seen, None if there was none. owner: a view of the
    memory, held while lines are traced to see who writes it. moved: memory that the tensor got since, else 0.
    on_ctx: an attribute that `forward` gave its `ctx`, of which autograd knows nothing and compares no version.
    """

    __slots__ = (
        "attribute",
        "dtype",
        "index",
        "leaf",
        "moved",
        "offset",
        "on_ctx",
        "owner",
        "record",
        "result",
        "shape",
        "size",
        "snapshot",
        "storage",
        "stride",
        "version",
        "writes",
    )

    def __init__(self, record: NodeRecord | None, attribute: str, index: int, tensor: Any) -> None:
        if record is not None:
            self.record: NodeRecord = record
        self.attribute = attribute
        self.result = attribute in RESULTS
        self.index = index
        self.storage = storage_of(tensor)
        self.version: int = -1 if tensor.is_inference() else tensor._version
        self.leaf: bool = tensor.requires_grad and is_leaf(tensor)
        self.dtype = tensor.dtype
        self.shape = tuple(tensor.shape)
        self.stride = tuple(tensor.stride())
        self.offset: int = tensor.storage_offset()
        self.size: int = tensor.numel() * tensor.element_size()
        self.writes: list[StorageWrite] = []
        self.snapshot: Any = None
        self.owner: Any = None
        self.moved = 0
        self.on_ctx = False


@dataclass(frozen=True, slots=True)
class StorageWrite:
    """A write to memory: `kind` is inplace, optimizer, hook, function-forward, function-backward, statistics, host, or
    replaced, when a tensor got other memory.

    `through` says how the memory was reached, empty if by the tensor itself. `line` is where a host write was seen.
    """

    sequence: int
    site: Site
    op: str
    kind: str
    storage: int
    through: str = ""
    line: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Hidden:
    """What one write through a view saved; if that is not `known`, what it may have saved.

    own_operand: it writes over an operand that it must itself save.
    """

    known: bool
    entries: tuple[SavedTensor, ...]
    own_operand: bool


class NodeRecord:
    """One node: which op made it, where, what it saved, and which backward ran it.

    hidden: what a write through a view may have saved out of sight; this is the node of the base.
    version: that of the result if it is a view, else -1. era: backwards that had ended before.
    """

    __slots__ = (
        "alive",
        "bytes",
        "call",
        "calls",
        "era",
        "hidden",
        "hooked",
        "op",
        "out",
        "pulse",
        "released",
        "saved",
        "sequence",
        "site",
        "stale_at_birth",
        "version",
    )

    def __init__(self, site: Site, op: str, sequence: int, pulse: int, out: Any, hooked: bool) -> None:
        self.site = site
        self.op = op
        self.sequence = sequence
        self.pulse = pulse
        self.out = out
        self.hooked = hooked
        self.saved: tuple[SavedTensor, ...] = ()
        self.bytes = 0
        self.call: BackwardCall | None = None
        self.calls = 0
        self.released = False
        self.alive = True
        self.stale_at_birth = False
        self.hidden: Hidden | None = None
        self.version = -1
        self.era = 0

    def result(self) -> Any:
        """The result while it lives and still is the result of this node: a view written since gets another one."""
        out = self.out()
        return None if out is None or (self.version >= 0 and out._version != self.version) else out


@dataclass(slots=True)
class BackwardCall:
    """One run of the engine."""

    number: int
    site: Site
    retain: bool
    create: bool
    accumulate: bool
    records: list[NodeRecord] = field(default_factory=list)
    failed: bool = False


class Mark:
    """Dies with its node."""

    __slots__ = ("graph", "record")

    def __init__(self, record: NodeRecord, graph: LiveGraph) -> None:
        self.record = record
        self.graph = graph

    def __del__(self) -> None:
        self.graph.forget(self.record)


class LiveGraph:
    """All live records, indexed by the memory they saved."""

    def __init__(self) -> None:
        self.closed = False
        self.sequence = 0
        self.pulse = 0
        self.era = 0
        self.live: dict[int, NodeRecord] = {}
        self.live_bytes = 0
        self.by_storage: dict[int, list[SavedTensor]] = defaultdict(list)
        self.alive_per_pulse: Counter[int] = Counter()
        self.suspects: dict[int, SavedTensor] = {}
        self.roots: dict[Place, RootUse] = {}
        # What checkpoints keep of their inputs, which only the error of a backward asks for.
        self.inputs: dict[int, NodeRecord] = {}
        self._names: dict[type, tuple[str, ...]] = {}

    def tick(self) -> int:
        self.sequence += 1
        return self.sequence

    def record(self, node: Any, site: Site, op: str, out: Any, hooked: bool) -> NodeRecord | None:
        """Starts the record of a node, or returns None if the node already has one."""
        metadata = node.metadata
        if KEY in metadata:
            return None
        record = NodeRecord(site, op, self.tick(), self.pulse, weakref.ref(out), hooked)
        if isinstance(out, torch.Tensor) and out._is_view():
            record.version = out._version
        metadata[KEY] = Mark(record, self)
        record.era = self.era
        site.made += 1
        self.live[id(record)] = record
        self.alive_per_pulse[self.pulse] += 1
        use = self.root_use(site)
        if use is not None:
            use.recorded += 1
        if not hooked:
            self._see_saved(node, record)
        return record

    def root_use(self, site: Site) -> RootUse | None:
        """What is counted for the module call that a site lies in; None outside all modules."""
        if site.use is None and site.root is not None:
            place = site.places[site.root]
            site.use = self.roots.setdefault(place, RootUse(site))
        return site.use

    def _see_saved(self, node: Any, record: NodeRecord) -> None:
        saved: list[SavedTensor] = []
        kind = type(node)
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = saved_names(kind)
        for name in names:
            try:
                value = getattr(node, name)
            except RuntimeError:
                # `y *= y`: the op has overwritten its own operand.
                record.stale_at_birth = True
                continue
            if isinstance(value, torch.Tensor):
                if value.layout is not torch.strided:
                    continue
                saved.append(SavedTensor(record, name, -1, value))
            elif isinstance(value, (tuple, list)):
                saved.extend(
                    SavedTensor(record, name, i, item)
                    for i, item in enumerate(value)
                    if isinstance(item, torch.Tensor) and item.layout is torch.strided
                )
        if issubclass(kind, torch.autograd.function.FunctionCtx):
            saved.extend(_kept_on(node, record))
        if not saved:
            return
        if getattr(node, "_saved_training", False) and "BatchNorm" in type(node).__name__:
            # In training, backward recomputes from the batch; running statistics are saved but not read.
            saved = [s for s in saved if "running" not in s.attribute]
        record.saved = tuple(saved)
        for entry in saved:
            self.by_storage[entry.storage].append(entry)
            if not (entry.leaf or entry.on_ctx):
                record.bytes += entry.size
        self.live_bytes += record.bytes

    def see_hidden(self, record: NodeRecord, hidden: Hidden) -> None:
        """What a new node may have saved out of sight."""
        record.hidden = hidden
        for entry in hidden.entries:
            entry.record = record
            self.by_storage[entry.storage].append(entry)
        record.saved += hidden.entries

    def see_inputs(self, holder: Any, site: Site, tensors: list[Any]) -> None:
        """A checkpoint keeps its inputs in an object of its own, and no node of the graph does."""
        record = NodeRecord(site, "checkpoint", self.tick(), self.pulse, None, hooked=True)
        record.saved = tuple(
            SavedTensor(record, INPUT, index, tensor)
            for index, tensor in enumerate(tensors)
            if tensor.layout is torch.strided
        )
        record.out = weakref.ref(holder, lambda _: self._drop_inputs(record))
        self.inputs[id(record)] = record
        for entry in record.saved:
            self.by_storage[entry.storage].append(entry)

    def _drop_inputs(self, record: NodeRecord) -> None:
        if self.inputs.pop(id(record), None) is not None:
            self._unindex(record)

    def move(self, entry: SavedTensor, storage: int) -> None:
        """The tensor that was saved may have other memory now."""
        if entry.moved:
            self._unindex_entry(entry, entry.moved)
        entry.moved = storage
        self.by_storage[storage].append(entry)

    def release(self, record: NodeRecord) -> None:
        """The engine freed what the node had saved."""
        if record.released:
            return
        record.released = True
        self.live_bytes -= record.bytes
        self._unindex(record)

    def forget(self, record: NodeRecord) -> None:
        """The node died."""
        if self.closed or not record.alive:
            return
        record.alive = False
        self.live.pop(id(record), None)
        left = self.alive_per_pulse[record.pulse] - 1
        if left:
            self.alive_per_pulse[record.pulse] = left
        else:
            del self.alive_per_pulse[record.pulse]
        if not record.released:
            self.live_bytes -= record.bytes
            self._unindex(record)

    def _unindex(self, record: NodeRecord) -> None:
        for entry in record.saved:
            self._unindex_entry(entry, entry.storage)
            if entry.moved:
                self._unindex_entry(entry, entry.moved)
            self.suspects.pop(id(entry), None)
            entry.snapshot = entry.owner = None

    def _unindex_entry(self, entry: SavedTensor, storage: int) -> None:
        entries = self.by_storage.get(storage)
        if entries is not None:
            if entry in entries:
                entries.remove(entry)
            if not entries:
                del self.by_storage[storage]


def saved_names(kind: type) -> tuple[str, ...]:
    """Attributes that may hold saved tensors in nodes of a class."""
    if issubclass(kind, torch.autograd.function.FunctionCtx):
        return ("saved_tensors",)
    raw = {n.removeprefix("_raw") for n in dir(kind) if n.startswith("_raw_saved_")}
    return tuple(sorted(n for n in raw if hasattr(kind, n)))


def _kept_on(ctx: Any, record: NodeRecord) -> list[SavedTensor]:
    """Tensors that are attributes of a `ctx`."""
    found = []
    for name, value in vars(ctx).items():
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            entry = SavedTensor(record, name, -1, value)
            entry.on_ctx = True
            found.append(entry)
    return found


def distinct(writes: list[StorageWrite]) -> list[StorageWrite]:
    """One write of each place in the program, those of statistics left out."""
    seen: set[tuple[int, int]] = set()
    found = []
    for write in writes:
        place = write.site.inner
        if place is None or write.kind == "statistics":
            continue
        key = (id(place.code), place.instruction)
        if key not in seen:
            seen.add(key)
            found.append(write)
    return found


def storage_of(tensor: Any) -> int:
    """An address that stands for the memory of a tensor while it lives; 0 if it has no memory of the usual kind."""
    try:
        return _storage_address(tensor)
    except (RuntimeError, NotImplementedError):
        return 0


# A view whose base was written gets its node anew when somebody asks for it, be it only for `is_leaf`. The place of
# a node among the others decides the order in which gradients are added up, and with it their last bit: such a view
# is only asked where torch itself is about to ask.


def node_of(tensor: Any) -> Any:
    """The node that made a tensor; None for leaves, and for views that torch refuses to use since a write.

    Only for a tensor that is new, that is no view, or that torch is about to ask.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def origin(tensor: Any) -> Any:
    """The base of a view that has a graph, else the tensor: what may be asked for a node at any time."""
    base = tensor._base if tensor._is_view() else None
    return base if base is not None and base.requires_grad else tensor


def is_leaf(tensor: Any) -> bool:
    """Whether a tensor is a leaf; a view of something that requires grad is none."""
    return origin(tensor) is tensor and bool(tensor.is_leaf)


def leaf_of(node: Any) -> Any:
    """The leaf into which a node accumulates its gradient; None for other nodes."""
    return node.variable if type(node) is AccumulateGrad else None


def record_of(node: Any) -> NodeRecord | None:
    """The record of a node, None if it was made while nobody watched."""
    mark = node.metadata.get(KEY)
    return None if mark is None else mark.record


def saved_value(node: Any, entry: SavedTensor) -> Any:
    """The tensor a node saved; None if it is out of sight, and not sure to be saved or not held, or gone from a `ctx`.

    Raises RuntimeError as torch does: modified in place, or freed.
    """
    if not entry.attribute:
        hidden = entry.record.hidden
        return entry.owner if hidden is not None and hidden.known else None
    if entry.on_ctx:
        return getattr(node, entry.attribute, None)
    value = getattr(node, entry.attribute)
    return value if entry.index < 0 else value[entry.index]
