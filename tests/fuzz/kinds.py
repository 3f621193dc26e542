"""The kinds of random programs: how one is grown and judged, what is told of many, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fuzz import compare, cuts, loops, needless, reads
from tests.fuzz.asked import Share


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of program."""

    name: str
    """The option of the command that says how many."""
    what: str
    batch: str
    """The function that grows, judges and reads the programs of some seeds, as "module:name"."""
    seeds: int
    """How many of them in one call."""
    report: Callable[[Sequence[Any]], str]
    asked: Callable[[Sequence[Any]], list[Share]]


KINDS = (
    Kind("programs", "programs that may raise or be silently wrong", "tests.fuzz.compare:batch", 100, compare.report, compare.asked),
    Kind("loops", "training loops that may keep graphs", "tests.fuzz.loops:loop_batch", 25, loops.report, loops.asked),
    Kind("reads", "programs with host reads", "tests.fuzz.reads:read_batch", 25, reads.report, reads.asked),
    Kind("cuts", "programs that may cut off what trains", "tests.fuzz.cuts:cut_batch", 25, cuts.report, cuts.asked),
    Kind("needless", "programs whose graphs may serve nothing", "tests.fuzz.needless:needless_batch", 25, needless.report, needless.asked),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
