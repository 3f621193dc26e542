"""Operators that make the host wait for a device, by line and pass (GG301, GG302).

On a CPU nothing waits, but the same operators run; they are counted as what would wait on an accelerator. Reads
of a library, such as an optimizer, are left out: they are not the user's statement.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any

from gradguard.findings import Severity
from gradguard.runtime import lines
from gradguard.runtime.frames import USER, Place
from gradguard.runtime.plans import Plan

if TYPE_CHECKING:
    from gradguard.runtime.session import Session

FEWEST_READS = 3
EXPLICIT = {"item", "tolist", "cpu", "numpy"}
# These check the range of their argument on a CPU only.
CHECKED_ON_CPU = {"one_hot"}
# Files between an operator and the code that called it, and those of torch's functions that are written in Python.
BETWEEN = tuple(
    os.path.join(*path)
    for path in (("gradguard", "runtime", "watch.py"), ("gradguard", "runtime", "patches.py"), ("torch", "_compile.py"), ("torch", "_ops.py"),
                 ("torch", "_dynamo", "eval_frame.py"), ("torch", "_tensor.py"), ("torch", "_tensor_str.py"), ("torch", "functional.py"),
                 ("torch", "_jit_internal.py"), ("torch", "nn", "functional.py"))
)  # fmt: skip
DISTRIBUTIONS = os.path.join("torch", "distributions", "")
DEVICE = re.compile(r"\b(cuda|mps|xpu|npu|hpu|tpu|xla|accelerator|device|accelerate|fabric)\b", re.IGNORECASE)


@dataclass(slots=True)
class Read:
    """Reads at one place. first, last: number of optimizer steps done at the first and last read."""

    place: Place
    count: int = 0
    first: int = 0
    last: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    on_cpu: bool = True


class Reads:
    """Counts host reads and tells which happen in every pass of a loop."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps = 0
        self.by_place: dict[tuple[int, int], Read] = {}
        self._passes: dict[tuple[int, int], tuple[str, int]] = {}

    def see(self, plan: Plan, kwargs: dict[str, Any], args: Any, frame: FrameType) -> None:
        if plan.name == "repeat_interleave" and kwargs.get("output_size") is not None:
            return
        device = args[1 if plan.name == "copy_" else 0].device.type
        if device == "cuda" and self.session.syncs.on:
            # Torch tells of it itself, if the host does wait.
            return
        on_cpu = not plan.copies and device == "cpu"
        self.count(f"aten::{plan.name}", on_cpu, frame)

    def count(self, what: str, on_cpu: bool, frame: FrameType) -> None:
        session = self.session
        caller: FrameType | None = frame
        while caller is not None and _acts_for_caller(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is None or session.frames.kind(caller.f_code) != USER:
            return
        user = caller
        key = (id(user.f_code), user.f_lasti)
        read = self.by_place.get(key)
        if read is None:
            read = self.by_place[key] = Read(
                Place(user.f_code, user.f_lasti), first=self.steps, on_cpu=on_cpu
            )
        read.count += 1
        read.last = self.steps
        read.ops[what] += 1

    def see_pass(self, plan: Plan, frame: FrameType) -> None:
        """Counts how often each place runs its first op, as long as no optimizer step tells passes apart."""
        user = self.session.frames.user_frame(frame)
        if user is not None:
            key = (id(user.f_code), user.f_lasti)
            name, count = self._passes.get(key, (plan.name, 0))
            if name == plan.name:
                self._passes[key] = (name, count + 1)

    def finish(self) -> None:
        for read in self.by_place.values():
            if self._every_pass(read) and self._may_wait(read):
                self._report(read)

    def _may_wait(self, read: Read) -> bool:
        names = lines.call_names(read.place)
        if read.on_cpu and names & CHECKED_ON_CPU:
            return False
        if not read.on_cpu:
            return True
        return any(DEVICE.search("".join(lines.file(path).lines)) for path in self.session.user_files())

    def _every_pass(self, read: Read) -> bool:
        if read.count < FEWEST_READS:
            return False
        steps = read.last - read.first
        if steps:
            return read.count > steps
        loops = lines.loops_around(read.place)
        if not loops:
            return False
        start, end = loops[0]
        passes = 0
        for (code, instruction), (_, count) in self._passes.items():
            if code == id(read.place.code):
                line = Place(read.place.code, instruction).line
                if start < line <= end:
                    passes = max(passes, count)
        return read.count >= passes

    def _report(self, read: Read) -> None:
        names = lines.call_names(read.place)
        explicit = bool(names & EXPLICIT)
        code = "GG301" if explicit else "GG302"
        steps = read.last - read.first + 1
        often = f"{read.count} times in {steps} steps" if read.last > read.first else f"{read.count} times"
        what = ", ".join(sorted(read.ops))
        message = (
            f"The host waits for a value of the device here ({what}): {often}."
            if not read.on_cpu
            else f"On an accelerator the host would wait for the device here ({what}): {often}."
        )
        self.session.findings.add(code, read.place, message, Severity.INFORMATION)


@lru_cache(maxsize=4096)
def _acts_for_caller(path: str) -> bool:
    """Whether the functions of a file work on the tensors of the statement that called them, and keep none."""
    return path.endswith(BETWEEN) or DISTRIBUTIONS in path
