"""Operators that make the host wait for a device, by line and pass (GG301, GG302), and torch tells of
copies to a device that do (GG304).

On a CPU nothing waits, but the same operators run; they are counted as what would wait on an accelerator. Reads
of a library, such as an optimizer, are left out: they are not the user's statement.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

from gradguard.findings import Severity
from gradguard.runtime import lines, plans
from gradguard.runtime.collect import Findings
from gradguard.runtime.frames import USER, Frames, Place, Site
from gradguard.runtime.graph import NodeRecord, SavedTensor, record_of, saved_value
from gradguard.runtime.plans import Plan
from gradguard.runtime.survey import Survey
from gradguard.runtime.variables import locals_of

FEWEST_READS = 3
EXPLICIT = {"item", "tolist", "cpu", "numpy"}
REPEATED = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}
# Files between an operator and the code that called it, and those of torch's functions that are written in Python.
BETWEEN = tuple(
    os.path.join(*path)
    for path in (("gradguard", "runtime", "watch.py"), ("gradguard", "runtime", "level.py"), ("gradguard", "runtime", "patches.py"), ("torch", "_compile.py"), ("torch", "_ops.py"),
                 ("torch", "_dynamo", "eval_frame.py"), ("torch", "_tensor.py"), ("torch", "_tensor_str.py"), ("torch", "functional.py"),
                 ("torch", "_jit_internal.py"), ("torch", "nn", "functional.py"))
)  # fmt: skip
DISTRIBUTIONS = os.path.join("torch", "distributions", "")
DEVICE = re.compile(r"\b(cuda|mps|xpu|npu|hpu|tpu|xla|accelerator|device|accelerate|fabric)\b", re.IGNORECASE)


@dataclass(slots=True)
class HostSync:
    """Host syncs at one place. first, last: number of optimizer steps done at the first and last one.

    sites: how often by which callers. to_device: how often for a copy to the device, not from it. per_wait: how many reads on a CPU stand for one on an accelerator, 0 if none would
    be. left: those that are missing for the next one.
    """

    place: Place
    per_wait: int = 1
    left: int = 1
    count: int = 0
    to_device: int = 0
    first: int = 0
    last: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    on_cpu: bool = True
    sites: Counter[Site] = field(default_factory=Counter)


class Loop(NamedTuple):
    """A loop by its lines; `calls` if the sync does not stand in it but in a function that is called there."""

    code: CodeType
    start: int
    end: int
    calls: bool


class HostSyncs:
    """Counts host syncs and tells which happen in every pass of a loop.

    steps: optimizer steps done. torch_tells: torch itself tells of waits for CUDA, each of which is given to `count`.
    """

    def __init__(self, findings: Findings, frames: Frames) -> None:
        self._findings = findings
        self._frames = frames
        self.steps = 0
        self.torch_tells = False
        self.by_place: dict[tuple[int, int], HostSync] = {}
        self._passes: dict[Site, tuple[str, int]] = {}
        # Line of a place, and whether it runs more than once for one run of its function.
        self._looped: dict[tuple[int, int], tuple[int, bool]] = {}

    def see(self, plan: Plan, kwargs: dict[str, Any], args: Any, frame: FrameType) -> None:
        if plan.name == "repeat_interleave" and kwargs.get("output_size") is not None:
            return
        device = args[1 if plan.name == "copy_" else 0].device.type
        if device == "cuda" and self.torch_tells:
            # Torch tells of it itself, if the host does wait.
            return
        on_cpu = not plan.copies and device == "cpu"
        self.count(f"aten::{plan.name}", on_cpu, frame)

    def count(self, what: str, on_cpu: bool, frame: FrameType, *, to_device: bool = False) -> None:
        caller: FrameType | None = frame
        while caller is not None and _acts_for_caller(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is not None and self._frames.kind(caller.f_code) == USER:
            self._count(what, on_cpu, caller, to_device)

    def _count(self, what: str, on_cpu: bool, user: FrameType, to_device: bool = False) -> None:
        key = (id(user.f_code), user.f_lasti)
        sync = self.by_place.get(key)
        if sync is None:
            place = Place(user.f_code, user.f_lasti)
            per_wait = _reads_per_wait(place, user) if on_cpu else 1
            sync = self.by_place[key] = HostSync(place, per_wait, per_wait, first=self.steps, on_cpu=on_cpu)
        sync.left -= 1
        if sync.left:
            return
        sync.left = sync.per_wait
        sync.count += 1
        sync.to_device += to_device
        sync.sites[self._frames.site(user)] += 1
        sync.last = self.steps
        sync.ops[what] += 1

    def see_backward(self, found: Survey, frame: FrameType) -> None:
        """The engine, which runs unwatched, reads the masks of some operators again, whoever calls it for the program."""
        user = self._frames.user_frame(frame)
        masked = {id(record) for record in found.records if _masks(record)}
        if user is None or not masked:
            return
        for node in found.nodes:
            record = record_of(node)
            if record is None or id(record) not in masked or not self._reads_again(node, record):
                continue
            try:
                device = saved_value(node, _masks(record)[0]).device.type
            except RuntimeError:
                # Written or freed: this backward raises.
                continue
            self._count(f"backward of aten::{record.op}", device == "cpu", user)
            return

    def _reads_again(self, node: Any, record: NodeRecord) -> bool:
        """Whether the gradient is put where a mask says, or taken from there."""
        if record.op == "index":
            return True
        to_self, *to_values = (edge is not None for edge, _ in node.next_functions)
        place = record.site.inner
        sync = self.by_place.get((id(place.code), place.instruction)) if place is not None else None
        # If its forward did not count the elements there is one value for all, and one zero for them in backward.
        return any(to_values) or (to_self and not node._saved_accumulate and sync is not None)

    def see_pass(self, plan: Plan, frame: FrameType) -> None:
        """Counts how often each place runs its first op, as long as no optimizer step tells passes apart."""
        site = self._frames.site(frame)
        name, count = self._passes.get(site, (plan.name, 0))
        if name == plan.name:
            self._passes[site] = (name, count + 1)

    def finish(self) -> None:
        for sync in self.by_place.values():
            if self._every_pass(sync) and self._may_wait(sync):
                self._report(sync)

    def _may_wait(self, sync: HostSync) -> bool:
        if not sync.on_cpu:
            return True
        return any(DEVICE.search("".join(lines.file(path).lines)) for path in self._frames.user_files())

    def _every_pass(self, sync: HostSync) -> bool:
        if sync.count < FEWEST_READS:
            return False
        steps = sync.last - sync.first
        if steps:
            return sync.count > steps
        counts: Counter[Loop] = Counter()
        for site, count in sync.sites.items():
            loop = _loop_of(site)
            if loop is not None:
                counts[loop] += count
        for loop, count in counts.items():
            passes = self._passes_of(loop)
            # In a function that is called in the loop one pass may sync more than once.
            if count >= max(passes, FEWEST_READS) and (not loop.calls or passes >= FEWEST_READS):
                return True
        return False

    def _passes_of(self, loop: Loop) -> int:
        """How often a loop came round, as far as the operators in it tell."""
        passes = 0
        for site, (_, count) in self._passes.items():
            if count > passes and self._lies_in(site, loop):
                passes = count
        return passes

    def _lies_in(self, site: Site, loop: Loop) -> bool:
        """Whether a site runs in a loop, and if in a function that is called there, once for each call."""
        for place in site.places:
            key = (id(place.code), place.instruction)
            known = self._looped.get(key)
            if known is None:
                line = place.line
                again = place.code.co_name in REPEATED or line in lines.file(place.path).looped
                known = self._looped[key] = (line, again)
            if place.code is loop.code:
                return loop.start < known[0] <= loop.end
            if known[1]:
                return False
        return False

    def _report(self, sync: HostSync) -> None:
        names = lines.call_names(sync.place)
        explicit = bool(names & EXPLICIT)
        code = "GG301" if explicit else "GG302"
        steps = sync.last - sync.first + 1
        often = f"{sync.count} times in {steps} steps" if sync.last > sync.first else f"{sync.count} times"
        what = ", ".join(sorted(sync.ops))
        if sync.to_device == sync.count:
            message = f"The host waits here until a value of its own is on the device ({what}): {often}."
            self._findings.add("GG304", sync.place, message, Severity.INFORMATION)
            return
        message = (
            f"The host waits for a value of the device here ({what}): {often}."
            if not sync.on_cpu
            else f"On an accelerator the host would wait for the device here ({what}): {often}."
        )
        self._findings.add(code, sync.place, message, Severity.INFORMATION)


def _masks(record: NodeRecord) -> list[SavedTensor]:
    """The masks that an indexing operator saved."""
    if record.op not in plans.MASKED or record.released:
        return []
    return [s for s in record.saved if s.attribute == "_saved_indices" and s.dtype in plans.MASKS]


def _loop_of(site: Site) -> Loop | None:
    """The innermost loop around a site, in its function or in one that calls it."""
    for level, place in enumerate(site.places):
        loops = lines.loops_around(place)
        if loops:
            return Loop(place.code, *loops[0], level > 0)
    return None


def _reads_per_wait(place: Place, frame: FrameType) -> int:
    """A CPU also checks the range of what `one_hot` is given: with a width that is all it reads for."""
    calls = [call for call in lines.calls_at(place) if lines.called_name(call) == "one_hot"]
    if not calls:
        return 1
    return 2 if any(_without_width(call, frame) for call in calls) else 0


def _without_width(call: ast.Call, frame: FrameType) -> bool:
    """Whether a call of `one_hot` leaves the number of classes to the values, which -1 does too."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    width = given.get("num_classes", call.args[1] if len(call.args) > 1 else None)
    if isinstance(width, ast.Name):
        value = locals_of(frame, (width.id,)).get(width.id, frame.f_globals.get(width.id))
        return type(value) is int and value == -1
    return width is None or ast.unparse(width) == "-1"


@lru_cache(maxsize=4096)
def _acts_for_caller(path: str) -> bool:
    """Whether the functions of a file work on the tensors of the statement that called them, and keep none."""
    return path.endswith(BETWEEN) or DISTRIBUTIONS in path
