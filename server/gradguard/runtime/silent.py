"""Silent corruption (GG105): what backward reads is not what was saved, and no version counter says so.

Values are compared only where a write that the counter may miss can have happened: memory that an operator
wrote while a node still needed it, and memory that NumPy shares. Large tensors are compared in a sample.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from gradguard.findings import Severity
from gradguard.runtime import lines
from gradguard.runtime.collect import Where
from gradguard.runtime.faults import distinct
from gradguard.runtime.frames import Site
from gradguard.runtime.tape import Call, Record, Saved, Write, saved_value

if TYPE_CHECKING:
    from gradguard.runtime.session import Session

MOST_ELEMENTS = 262_144
LINE_ELEMENTS = 4_096
MOST_SHARED = 64
RESULTS = {"_saved_result", "_saved_output", "_saved_out"}


class SilentWrites:
    """Keeps the values that saved tensors must have when backward reads them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.exported = False
        self.shared: dict[int, int] = {}
        self.sampled = False

    def see_saved(self, node: Any, record: Record) -> None:
        """A new record: takes the values of what lies in memory that NumPy can write."""
        for entry in record.saved:
            if self.exported or not (entry.leaf or entry.attribute in RESULTS):
                tensor = saved_value(node, entry)
                if self._is_shared(tensor, entry):
                    self._take(entry, tensor.untyped_storage(), tensor.device, watch=True)

    def _is_shared(self, tensor: Any, entry: Saved) -> bool:
        """Memory that NumPy has a view of: torch then refuses to resize it."""
        if (
            tensor.device.type != "cpu"
            or not tensor.dim()
            or (tensor.grad_fn is not None and not self.exported)
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
        for entry in list(self.session.tape.by_storage.get(storage._cdata, ())):
            if entry.snapshot is None:
                self._take(entry, storage, tensor.device, watch=True)

    def before_write(self, entry: Saved, target: Any) -> None:
        """An operator is about to write memory that a node saved."""
        if entry.snapshot is None:
            self._take(entry, target.untyped_storage(), target.device)

    def _take(self, entry: Saved, storage: Any, device: Any, watch: bool = False) -> None:
        with self.session.silenced(), torch.no_grad():
            view = torch.empty(0, dtype=entry.dtype, device=device).set_(
                storage, entry.offset, entry.shape, entry.stride
            )
            entry.snapshot = _sample(view, MOST_ELEMENTS).clone()
            if view.numel() > MOST_ELEMENTS:
                self.sampled = True
        self.session.tape.suspects[id(entry)] = entry
        if watch and not self.session.light:
            # The node holds the memory for as long as this view is kept.
            entry.owner = view
            if self._lines not in self.session.tracer.listeners:
                self.session.tracer.listen(self._lines, sys._getframe(3))

    def _lines(self, line: tuple[str, int]) -> bool:
        """After a line of the user's code: did shared memory change without an operator?"""
        session = self.session
        suspects = session.tape.suspects
        for entry in list(suspects.values()):
            if entry.writes or entry.owner is None:
                continue
            with session.silenced(), torch.no_grad():
                probe = _sample(_sample(entry.owner, MOST_ELEMENTS), LINE_ELEMENTS)
                changed = not _same(probe, _sample(entry.snapshot, LINE_ELEMENTS))
            if changed:
                site = Site(-1, (), None)
                entry.writes.append(
                    Write(session.tape.tick(), site, "numpy", "host", entry.storage, line=line)
                )
        return bool(suspects)

    def check(self, call: Call, nodes: list[Any]) -> None:
        """Before backward runs these nodes: are the values that it will read those that were saved?"""
        suspects = self.session.tape.suspects
        for node in nodes:
            mark = node.metadata.get("gradguard")
            if mark is None or mark.record.hooked or mark.record.released:
                continue
            for entry in mark.record.saved:
                if entry.leaf or id(entry) in suspects:
                    self._check_entry(call, node, entry)

    def _check_entry(self, call: Call, node: Any, entry: Saved) -> None:
        try:
            value = saved_value(node, entry)
        except RuntimeError:
            return
        if value.untyped_storage()._cdata != entry.storage:
            self._report_replaced(call, entry)
        elif entry.snapshot is not None:
            with self.session.silenced(), torch.no_grad():
                same = _same(_sample(value.detach(), MOST_ELEMENTS), entry.snapshot)
            if not same:
                self._report(call, entry)

    def _report(self, call: Call, entry: Saved) -> None:
        record = entry.record
        related: list[tuple[Where, str]] = [
            (record.site.inner, f"`{record.op}` saved the tensor here"),
            (call.site.inner, "this backward computes a wrong gradient from it"),
        ]
        host = [w for w in entry.writes if w.kind == "host"]
        statistics = [w for w in entry.writes if w.kind == "statistics"]
        for write in host[:1]:
            self._add(write.line, "Memory that NumPy shares was written while backward still needed it: "
                      "no error, wrong gradient.", related)  # fmt: skip
        for write in distinct(entry.writes):
            if write.kind == "host":
                continue
            place = write.site.inner
            target = lines.target_text(place) if place else ""
            if write.kind == "optimizer":
                what = "The optimizer changes parameters in a way the version counter does not see"
            else:
                what = f"{'`' + target + '`' if target else '`' + write.op + '`'} is written behind autograd's back"
            self._add(
                place, f"{what} while backward still needs the old values: no error, wrong gradient.", related
            )
        if statistics and not host:
            self._add(
                statistics[0].site.inner,
                "Batch normalisation updates running statistics that an earlier pass in eval mode saved: no error, "
                "wrong gradient.",
                related,
            )
        if not entry.writes:
            self._add(
                record.site.inner,
                f"What `{record.op}` saved here changed before backward read it, by a write outside torch: no error, "
                "wrong gradient.",
                related[1:],
            )

    def _report_replaced(self, call: Call, entry: Saved) -> None:
        record = entry.record
        self._add(
            record.site.inner,
            f"`{record.op}` saved this parameter, but `.data = ...` gave it other memory before backward: the gradient "
            "is computed from the new values.",
            [(call.site.inner, "this backward computes a wrong gradient from it")],
        )

    def _add(self, where: Where, message: str, related: list[tuple[Where, str]]) -> None:
        self.session.findings.add("GG105", where, message, Severity.WARNING, related)


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
