"""Silent corruption (GG105): what backward reads is not what was saved, and no version counter says so.

Values are compared only where a write that the counter may miss can have happened: memory that an operator
wrote while a node still needed it, and memory that NumPy shares. Large tensors are compared in a sample.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

from gradguard.findings import Severity
from gradguard.runtime import lines
from gradguard.runtime.collect import Where
from gradguard.runtime.frames import Site
from gradguard.runtime.graph import (
    BackwardCall,
    NodeRecord,
    SavedTensor,
    StorageWrite,
    distinct,
    node_of,
    record_of,
    saved_value,
    storage_of,
)
from gradguard.runtime.plans import COLLECTIVES, Plan
from gradguard.runtime.run_state import RunState

MOST_ELEMENTS = 262_144
LINE_ELEMENTS = 4_096
MOST_SHARED = 64


class SilentWrites:
    """Keeps the values that saved tensors must have when backward reads them."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.exported = False
        self.shared: dict[int, int] = {}
        self.sampled = False
        # Whether a write was counted cannot be seen for what was saved out of sight: if so, backward raises.
        self._unless_it_raises: list[tuple[BackwardCall, SavedTensor]] = []
        # What custom backwards of the run under way have read of changed values.
        self._read: list[SavedTensor] = []

    def see_saved(self, node: Any, record: NodeRecord) -> None:
        """A new record: takes the values of what lies in memory that NumPy can write."""
        for entry in record.saved:
            if self.exported or not (entry.leaf or entry.result):
                tensor = saved_value(node, entry)
                if self._is_shared(tensor, entry):
                    self._take(entry, tensor.untyped_storage(), tensor.device, watch=True)

    def _is_shared(self, tensor: Any, entry: SavedTensor) -> bool:
        """Memory that NumPy has a view of: torch then refuses to resize it."""
        if (
            not entry.shape
            or not tensor.is_cpu
            or (tensor.requires_grad and not self.exported and node_of(tensor) is not None)
        ):
            return False
        storage = tensor.untyped_storage()
        if storage.resizable() or storage.is_shared():
            return False
        number = entry.record.site.number
        self.shared[number] = self.shared.get(number, 0) + 1
        return self.shared[number] <= MOST_SHARED

    def export(self, tensor: Any) -> None:
        """`Tensor.numpy` shares the memory of a tensor."""
        self.exported = True
        storage = tensor.untyped_storage()
        for entry in list(self.state.graph.by_storage.get(storage._cdata, ())):
            if entry.snapshot is None:
                self._take(entry, storage, tensor.device, watch=True)

    def before_write(self, entry: SavedTensor, target: Any) -> None:
        """An operator is about to write memory that a node saved."""
        if entry.snapshot is None:
            self._take(entry, target.untyped_storage(), target.device)

    def before_replacing(self, tensor: Any, frame: FrameType) -> list[SavedTensor]:
        """A tensor is about to get other memory. Returns what may read that from then on, having saved the tensor."""
        storage = storage_of(tensor)
        entries = list(self.state.graph.by_storage.get(storage, ()))
        if entries:
            site = self.state.frames.site(frame)
            write = StorageWrite(self.state.graph.tick(), site, "data", "replaced", storage)
            for entry in entries:
                entry.writes.append(write)
                self.before_write(entry, tensor)
        return entries

    def _take(self, entry: SavedTensor, storage: Any, device: Any, watch: bool = False) -> None:
        with self.state.silenced(), torch.no_grad():
            view = torch.empty(0, dtype=entry.dtype, device=device).set_(
                storage, entry.offset, entry.shape, entry.stride
            )
            entry.snapshot = _sample(view, MOST_ELEMENTS).clone()
            if view.numel() > MOST_ELEMENTS:
                self.sampled = True
        self.state.graph.suspects[id(entry)] = entry
        if not entry.attribute:
            # Nothing else tells of the memory.
            entry.owner = view
        if watch and not self.state.light:
            # The node holds the memory for as long as this view is kept.
            entry.owner = view
            if self._lines not in self.state.tracer.listeners:
                self.state.tracer.listen(self._lines, sys._getframe(3))

    def _lines(self, line: tuple[str, int]) -> bool:
        """After a line of the user's code: did shared memory change without an operator?"""
        state = self.state
        suspects = state.graph.suspects
        for entry in list(suspects.values()):
            if entry.writes or entry.owner is None:
                continue
            with state.silenced(), torch.no_grad():
                probe = _sample(_sample(entry.owner, MOST_ELEMENTS), LINE_ELEMENTS)
                changed = not _same(probe, _sample(entry.snapshot, LINE_ELEMENTS))
            if changed:
                site = Site(-1, (), None)
                entry.writes.append(
                    StorageWrite(state.graph.tick(), site, "numpy", "host", entry.storage, line=line)
                )
        return bool(suspects)

    def check(self, call: BackwardCall, nodes: list[Any]) -> None:
        """Before backward runs these nodes: are the values that it will read those that were saved?"""
        suspects = self.state.graph.suspects
        for node in nodes if suspects else ():
            mark = node.metadata.get("gradguard")
            if mark is None or mark.record.hooked or mark.record.released:
                continue
            for entry in mark.record.saved:
                if id(entry) in suspects and not entry.on_ctx:
                    self._check_entry(call, node, entry)

    def _check_entry(self, call: BackwardCall, node: Any, entry: SavedTensor) -> None:
        try:
            value = saved_value(node, entry)
        except RuntimeError:
            return
        if value is None:
            return
        if entry.snapshot is not None:
            with self.state.silenced(), torch.no_grad():
                same = _same(_sample(value.detach(), MOST_ELEMENTS), entry.snapshot.to(value.device))
            if not same and entry.attribute:
                self._report(call, entry)
            elif not same:
                self._unless_it_raises.append((call, entry))

    def changed_on(self, node: Any) -> list[SavedTensor]:
        """What a custom Function kept as attributes of its `ctx`, and what other values it has now."""
        record = record_of(node)
        found: list[SavedTensor] = []
        for entry in () if record is None else record.saved:
            value = getattr(node, entry.attribute, None) if entry.on_ctx and entry.writes else None
            if entry.snapshot is not None and isinstance(value, torch.Tensor):
                with self.state.silenced(), torch.no_grad():
                    if not _same(_sample(value.detach(), MOST_ELEMENTS), entry.snapshot.to(value.device)):
                        found.append(entry)
        return found

    def see_read(self, plan: Plan, args: Any) -> None:
        """An operator of a custom backward whose `ctx` has kept what was written since: does it compute from that?"""
        thread = self.state.thread()
        values = [args[i] for i in plan.positions if i < len(args)]
        for i in plan.lists:
            values.extend(args[i] or () if i < len(args) else ())
        read = {storage_of(value) for value in values if isinstance(value, torch.Tensor)}
        for entry in [each for each in thread.changed if (each.moved or each.storage) in read]:
            thread.changed.remove(entry)
            self._read.append(entry)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        """The backward that `check` looked forward to has ended."""
        read, self._read = self._read, []
        for entry in read:
            self._report(call, entry)
        waiting = [entry for asked, entry in self._unless_it_raises if asked is call]
        if waiting:
            self._unless_it_raises = [pair for pair in self._unless_it_raises if pair[0] is not call]
            for entry in waiting if error is None else ():
                self._report(call, entry)

    def _report(self, call: BackwardCall, entry: SavedTensor) -> None:
        record = entry.record
        related: list[tuple[Where, str]] = [
            (record.site.inner, f"`{record.op}` {'keeps' if entry.on_ctx else 'saved'} the tensor here"),
            (call.site.inner, "this backward reads the changed values"),
        ]
        told = False
        for write in entry.writes:
            if write.kind == "host":
                told = True
                self._add(write.line, "NumPy writes memory that backward still needs", related)
                break
        for write in distinct(entry.writes):
            if write.kind != "host":
                told = True
                self._add(write.site.inner, _what(write, entry), related)
        for write in entry.writes:
            if write.kind == "statistics":
                told = True
                self._add(
                    write.site.inner,
                    "Batch normalisation updates running statistics that an earlier pass in eval mode saved",
                    related,
                )
                break
        if not told:
            self._add(
                record.site.inner, f"What `{record.op}` saved here is written from outside torch", related[1:]
            )

    def _add(self, where: Where, what: str, related: list[tuple[Where, str]]) -> None:
        message = f"{what}: no error, and the gradient is computed from the changed values."
        self.state.findings.add("GG105", where, message, Severity.WARNING, related)


def _what(write: StorageWrite, entry: SavedTensor) -> str:
    if write.kind == "optimizer":
        return "The optimizer changes parameters that backward still needs, unseen by the version counter"
    if write.kind == "replaced":
        return "`.data = ...` gives a tensor other memory while backward still needs the old"
    collective = write.op in COLLECTIVES
    place = write.site.inner
    target = lines.target_text(place, argument=collective) if place is not None else ""
    if place is not None and write.op == "broadcast_" and "broadcast" not in lines.call_names(place):
        # DistributedDataParallel sends the buffers of rank 0 in front of a forward.
        target = "a buffer"
    if entry.on_ctx:
        kept = f"which `ctx.{entry.attribute}` of `{entry.record.op}` still keeps for backward, unseen by autograd"
        return f"`{target or write.op}` is written, {kept}"
    how = "by a collective" if collective else "behind autograd's back"
    target = target if target == "a buffer" else f"`{target or write.op}`"
    return f"{target} is written {how} while backward still needs the old values"


def _sample(view: Any, most: int) -> Any:
    """A view of at most about `most` elements, spread over the tensor."""
    while view.numel() > most:
        sizes = list(view.shape)
        widest = sizes.index(max(sizes))
        step = min(-(-view.numel() // most), sizes[widest])
        view = view[(slice(None),) * widest + (slice(None, None, step),)]
    return view


def _same(first: Any, second: Any) -> bool:
    if first.shape != second.shape:
        return False
    equal = first == second
    if first.dtype.is_floating_point or first.dtype.is_complex:
        equal = equal | ((first != first) & (second != second))
    return bool(equal.all())
