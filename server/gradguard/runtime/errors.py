"""Says why torch raised: who saved, who wrote, which backward needed it; where a graph was freed or cut."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import torch

from gradguard.findings import Severity
from gradguard.runtime import lines
from gradguard.runtime.carry import carried_from, cause_of
from gradguard.runtime.collect import Findings, Where
from gradguard.runtime.frames import Frames, Place
from gradguard.runtime.graph import (
    BackwardCall,
    LiveGraph,
    NodeRecord,
    SavedTensor,
    StorageWrite,
    distinct,
    record_of,
    saved_value,
)
from gradguard.runtime.survey import root_node
from gradguard.runtime.variables import argument_names

STALE = "modified by an inplace operation"
FREED = "backward through the graph a second time"
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
# The node with which a checkpoint that is not reentrant keeps its inputs in releases of torch before 2.13.
KEEPS_INPUTS = "_NoopSaveInputs"
NO_GRAD = "does not require grad and does not have a grad_fn"

# Text of an error that an operator raises at its own statement -> code and what it means.
AT_STATEMENT = (
    ("view of a leaf Variable that requires grad", "GG102", "In-place write to a view of a leaf that requires grad."),
    ("leaf Variable that requires grad", "GG102", "In-place write to a leaf that requires grad."),
    ("This view was created inside a custom Function", "GG109", "In-place write to what a custom Function returned."),
    ("This view is the output of a function that returns multiple views", "GG103",
     "In-place write to one of several views that one op returned."),
    ("A view was created in no_grad mode", "GG103", "In-place write to a view that was made under no_grad."),
    ("Can't detach views in-place", "GG103", "In-place detach of a view."),
    ("A view was created in inference mode", "GG107", "In-place write to a view that was made in inference mode."),
    ("more than one element of the written-to tensor refers to a single memory location", "GG104",
     "In-place write to a tensor whose elements share memory, as after expand."),
    ("some elements of the input tensor and the written-to tensor refer to a single memory location", "GG104",
     "In-place write to memory that an operand has in another order or in part."),
    ("Inference tensors cannot be saved for backward", "GG107",
     "A tensor made in inference mode reaches an op that must save it for backward."),
    ("Inplace update to inference tensor", "GG107", "In-place write to a tensor made in inference mode."),
    ("Cannot set version_counter for inference tensor", "GG107", "A tensor made in inference mode is used with autograd."),
)  # fmt: skip


# How torch.compile says that it would have to know a value, which only the device does.
READS_OF_COMPILED = (
    "Data-dependent branching",
    "Tensor.item()",
    "Data dependent operator",
    "Data-dependent assertion",
)


class TorchErrors:
    """Turns errors of torch into findings; never raises for an error it does not know."""

    def __init__(
        self,
        findings: Findings,
        frames: Frames,
        graph: LiveGraph,
        latest_cut: Callable[[], tuple[Place, str] | None],
    ) -> None:
        """`latest_cut` is where a graph or a parameter was last dropped, and by what."""
        self._findings = findings
        self._frames = frames
        self._graph = graph
        self._latest_cut = latest_cut

    def of_backward(self, call: BackwardCall, roots: Any, error: BaseException) -> None:
        text = str(error)
        if STALE in text:
            self._stale(call, roots, text)
        elif FREED in text:
            self._freed(call, roots, text)
        elif NO_GRAD in text:
            self._no_graph(call, text)

    def of_statement(
        self, error: BaseException, trace: TracebackType | None, reached: FrameType | None = None
    ) -> None:
        """An error that left the watched code or was caught there, and those that led to it.

        `trace` is that of the error; `reached` is the frame it has come to, if it is still running.
        """
        seen: list[BaseException] = []
        told: BaseException | None = error
        while told is not None and told not in seen:
            self._of_statement(told, trace if told is error else told.__traceback__, reached)
            seen.append(told)
            told = told.__cause__ or told.__context__

    def _of_statement(
        self, error: BaseException, trace: TracebackType | None, reached: FrameType | None
    ) -> None:
        if not isinstance(error, RuntimeError):
            return
        text = str(error)
        if type(error).__name__ == "Unsupported" and any(part in text for part in READS_OF_COMPILED):
            self._read_of_compiled(error, text)
            return
        for part, code, meaning in AT_STATEMENT:
            if part in text:
                stack = self._callers(reached) + self._user_frames(trace)
                if code == "GG107" and "saved for backward" in part:
                    stack = _towards_giver(stack)
                if stack:
                    frame, instruction = stack[-1]
                    self._findings.add(
                        code,
                        Place(frame.f_code, instruction),
                        meaning,
                        Severity.ERROR,
                        notes=(f"torch: {text}",),
                    )
                return

    def _read_of_compiled(self, error: BaseException, text: str) -> None:
        """torch.compile with `fullgraph=True` has met a read of the device; it knows the line, which did not run."""
        stack = [
            (each.filename, each.lineno)
            for each in getattr(error, "real_stack", None) or ()
            if each.lineno and self._frames.is_user_file(each.filename)
        ]
        if stack:
            self._findings.add(
                "GG303",
                stack[-1],
                "A value is read from the device in compiled code: with `fullgraph=True` that is an error.",
                Severity.ERROR,
                notes=(f"torch: {text.strip().partition(chr(10))[0]}",),
            )

    def _callers(self, frame: FrameType | None) -> list[tuple[FrameType, int]]:
        """Frames of the user's code that wait for this one, outermost first, with the instruction each stands at."""
        found: list[tuple[FrameType, int]] = []
        while frame is not None and frame is not self._frames.base:
            frame = frame.f_back
            if frame is not None and self._frames.is_user_file(frame.f_code.co_filename):
                found.append((frame, frame.f_lasti))
        return found[::-1]

    def _user_frames(self, trace: TracebackType | None) -> list[tuple[Any, int]]:
        """Frames of the user's code in a traceback, outermost first, with the instruction each stood at."""
        found: list[tuple[Any, int]] = []
        while trace is not None:
            if self._frames.is_user_file(trace.tb_frame.f_code.co_filename):
                found.append((trace.tb_frame, trace.tb_lasti))
            trace = trace.tb_next
        return found

    def _stale(self, call: BackwardCall, roots: Any, text: str) -> None:
        stale = [(node, entry) for node, entry in self._entries(roots) if _is_stale(node, entry)]
        told = False
        for _, entry in stale:
            for write in distinct([w for w in entry.writes if w.kind != "replaced"]):
                told = True
                self._report_write(call, entry.record, write, text)
        for node in _nodes(roots):
            record = record_of(node)
            if record is not None and record.stale_at_birth and not record.released:
                told = True
                self._report_own_operand(call, record, text)
        told = told or self._stale_out_of_sight(call, roots, text) or self._stale_input(call, text)
        if not told:
            self._findings.add(
                "GG101",
                call.site.inner,
                "backward needs a tensor that was modified in place, by a write the monitor did not see "
                "(it was off then, or the write came from code that it does not watch).",
                Severity.ERROR,
                notes=(f"torch: {text}",),
            )

    def _stale_out_of_sight(self, call: BackwardCall, roots: Any, text: str) -> bool:
        """Writes to memory that a node may have saved where it cannot be looked at."""
        told = False
        for node in _nodes(roots):
            record = record_of(node)
            if record is None or record.hidden is None:
                continue
            if record.hidden.own_operand:
                told = True
                self._report_own_operand(call, record, text)
            for entry in record.hidden.entries:
                for write in distinct([w for w in entry.writes if w.kind != "replaced"]):
                    told = True
                    self._report_write(call, record, write, text)
        return told

    def _stale_input(self, call: BackwardCall, text: str) -> bool:
        """Writes to what a checkpoint was given: no node of the graph keeps it, but one that the checkpoint holds."""
        told = False
        older = [record for record in self._graph.live.values() if record.op == KEEPS_INPUTS]
        for record in [*older, *self._graph.inputs.values()]:
            for entry in record.saved:
                for write in distinct([w for w in entry.writes if w.kind != "replaced"]):
                    told = True
                    self._report_write(call, record, write, text)
        return told

    def _report_own_operand(self, call: BackwardCall, record: NodeRecord, text: str) -> None:
        self._findings.add(
            "GG101",
            record.site.inner,
            f"In-place `{record.op}` overwrites an operand that it must itself save for backward.",
            Severity.ERROR,
            [(call.site.inner, "this backward still needs it")],
            (f"torch: {text}",),
        )

    def _entries(self, roots: Any) -> list[tuple[Any, SavedTensor]]:
        found: list[tuple[Any, SavedTensor]] = []
        for node in _nodes(roots):
            record = record_of(node)
            if record is not None:
                found.extend((node, entry) for entry in record.saved)
        return found

    def _report_write(self, call: BackwardCall, record: NodeRecord, write: StorageWrite, text: str) -> None:
        op = "checkpoint" if record.op == KEEPS_INPUTS else record.op
        related: list[tuple[Where, str]] = [
            (record.site.inner, f"`{op}` saved the tensor here"),
            (call.site.inner, "this backward still needs it"),
        ]
        notes = (f"torch: {text}",)
        add = self._findings.add
        if write.kind == "optimizer":
            carried = carried_from(record, call) if record.call is not None else None
            if carried is not None and record.call is not None and record.call.retain:
                add(
                    "GG106",
                    write.site.inner,
                    "The optimizer changes weights that the graphs of this pass need as they were: a tensor is carried into "
                    "the next pass with its graph, and backward goes through it again.",
                    Severity.ERROR,
                    [
                        (carried, "the state is carried over here"),
                        (call.site.inner, "this backward reaches earlier passes"),
                    ],
                    notes,
                )
                add(
                    "GG206",
                    call.site.inner,
                    "`retain_graph=True` keeps the graphs of earlier passes, but backward through them cannot work: "
                    "their weights were changed by the optimizer.",
                    Severity.WARNING,
                    [(carried, "the state is carried over here"), (write.site.inner, "weights changed here")],
                    notes,
                )
                return
            add(
                "GG106",
                write.site.inner,
                f"The optimizer changes parameters that `{record.op}` saved and that a later backward still needs.",
                Severity.ERROR,
                related,
                notes,
            )
            return
        if write.kind == "function-backward":
            add(
                "GG108",
                write.site.inner,
                "`backward` of a custom Function writes a tensor that its forward saved; this backward reads it again.",
                Severity.WARNING,
                related,
                notes,
            )
            return
        target = lines.target_text(write.site.inner) if write.site.inner else ""
        named = f"`{target}`" if target else f"by `{write.op}`"
        alias = f", reached through {write.through}," if write.through else ""
        add(
            "GG101",
            write.site.inner,
            f"In-place write {'to ' if target else ''}{named}{alias} changes a tensor that `{op}` saved and "
            "that backward still needs.",
            Severity.ERROR,
            related,
            notes,
        )

    def _freed(self, call: BackwardCall, roots: Any, text: str) -> None:
        found = _boundary(roots, call)
        notes = (f"torch: {text}",)
        if found is None:
            self._findings.add(
                "GG203",
                call.site.inner,
                "backward reaches a graph that an earlier backward freed; the earlier one was not watched.",
                Severity.ERROR,
                notes=notes,
            )
            return
        old, new = found
        first = old.call.site.inner if old.call is not None else None
        cause = cause_of(old, new, call, self._first_of(old))
        made = (old.site.inner, f"the freed part ends here, in the result of `{old.op}`")
        if cause is None:
            self._findings.add(
                "GG203",
                call.site.inner,
                "This backward goes through a graph that an earlier backward has freed.",
                Severity.ERROR,
                [(first, "the first backward was here"), made],
                notes,
            )
            return
        self._findings.add(
            "GG203",
            cause,
            "A tensor that is carried over from here still has the graph of an earlier pass, which its backward freed.",
            Severity.ERROR,
            [
                (call.site.inner, "this backward reaches it again"),
                (first, "the first backward was here"),
                made,
            ],
            notes,
        )

    def _first_of(self, record: NodeRecord) -> NodeRecord:
        """The record of the op that computed a tensor, for one of an op that wrote it."""
        out = record.out()
        same = [r for r in self._graph.live.values() if out is not None and r.out() is out]
        return min(same, key=lambda r: r.sequence, default=record)

    def _no_graph(self, call: BackwardCall, text: str) -> None:
        cut = self._latest_cut()
        related: list[tuple[Where, str]] = [(call.site.inner, "backward finds no graph here")]
        if cut is None:
            self._findings.add(
                "GG205",
                call.site.inner,
                "backward is called on a value that no parameter leads to.",
                Severity.ERROR,
                notes=(f"torch: {text}",),
            )
            return
        place, what = cut
        self._findings.add(
            "GG205",
            place,
            f"{what} cuts the graph, and nothing else leads from the parameters to the loss.",
            Severity.ERROR,
            related,
            notes=(f"torch: {text}",),
        )


def _nodes(roots: Any) -> list[Any]:
    seen: set[Any] = set()
    order: list[Any] = []
    given = (roots,) if isinstance(roots, torch.Tensor) else roots
    pending = [root_node(r) for r in given]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        order.append(node)
        pending.extend(following for following, _ in node.next_functions)
    return order


def _is_stale(node: Any, entry: SavedTensor) -> bool:
    if entry.record.hooked or not entry.attribute:
        return False
    try:
        saved_value(node, entry)
    except RuntimeError as error:
        return STALE in str(error)
    return False


def _boundary(roots: Any, call: BackwardCall) -> tuple[NodeRecord, NodeRecord | None] | None:
    """The first freed record that backward meets, and the record that leads into it."""
    given = (roots,) if isinstance(roots, torch.Tensor) else roots
    pending: list[tuple[Any, NodeRecord | None]] = [(root_node(r), None) for r in given]
    seen: set[Any] = set()
    while pending:
        node, parent = pending.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        record = record_of(node)
        if record is not None and record.released and record.call is not None and record.call is not call:
            return record, parent
        pending.extend((following, record or parent) for following, _ in node.next_functions)
    return None


def _towards_giver(stack: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Drops inner frames while the inference tensor they use is an argument that their caller passed."""
    while len(stack) > 1:
        frame, instruction = stack[-1]
        statement = lines.file(frame.f_code.co_filename).statement(Place(frame.f_code, instruction).line)
        if statement is None:
            return stack
        names = lines.loaded_names(statement)
        arguments = set(argument_names(frame.f_code))
        values = frame.f_locals
        given = any(
            isinstance(values.get(name), torch.Tensor) and values[name].is_inference()
            for name in names & arguments
        )
        if not given:
            return stack
        stack = stack[:-1]
    return stack


def trimmed_traceback(error: BaseException, path: str) -> str:
    """The traceback as Python would print it had the program been started directly."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    told: traceback.TracebackException | None = traceback.TracebackException(
        type(error), error, trace or error.__traceback__
    )
    pending = [told]
    while pending:
        part = pending.pop()
        if part is not None:
            part.stack[:] = [f for f in part.stack if not f.filename.startswith(OWN_FOLDER)]
            pending += [part.__cause__, part.__context__]
    assert told is not None
    return "".join(told.format())
