"""How many steps the functions of one file may take together, shared out so that the last of them is still read.

A step is an evaluated node: the same on every machine, and by and large as long as another. Some are for whoever comes
first, and most files need no more. Of the others each function has a share for its further paths, by its length; its
last path may take all that is not kept back for those behind it. What it does not use is there for the next. A long
file has more, as it takes longer to read in any case.

Shares are round numbers, so that an edit of one function seldom changes what the others may take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradguard.engine.driver.toplevel import Function

FILE_STEPS = 300_000
"""What a file may take: some two seconds of a machine that does other things besides."""
LINE_STEPS = 30
"""The same for each line of a file that is longer than that has lines for."""
KEPT_BACK = 1_000
"""Enough for the first path of most functions."""
FREE_UNDONE = 2_000
"""Values of the top level that a path may have used without that counting: they are put back behind it."""
UNDONE_A_STEP = 8
"""Further ones that count as a step."""
SHORT = 5
"""Lines that the shortest function counts for: its object may have to be made."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The steps of one entry."""

    tries: int
    """Another path is tried as long as fewer were used."""
    whole: int
    """Where these are used, it is stopped."""

    @classmethod
    def own(cls, steps: int) -> Budget:
        """That of an entry alone: half of it is left for its last path."""
        return cls(steps - steps // 2, steps)

    def within(self, other: Budget) -> Budget:
        """The lesser of two."""
        return Budget(min(self.tries, other.tries), min(self.whole, other.whole))


class Shares:
    """The steps that are left for the functions of a file."""

    def __init__(self, lines: int, functions: Iterable[Function], script: int) -> None:
        """`script`: what the top level took. At least the half is left for the functions."""
        whole = max(FILE_STEPS, lines * LINE_STEPS)
        self._shared = whole * 2 // 3
        self._left = whole - min(script, whole // 2)
        self._weights = [(node.end_lineno or node.lineno) - node.lineno + SHORT for node in functions]
        self._waiting = sum(self._weights)
        self._made: set[str] = set()
        self._weights.reverse()

    def following(self) -> Budget:
        """What the next function may take."""
        weight = self._weights.pop()
        share = self._left * weight // self._waiting
        self._waiting -= weight
        first = self._left - self._shared
        kept = self._left - KEPT_BACK * len(self._weights)
        return Budget(_rounded(max(share, first)), _rounded(max(2 * share, first, kept)))

    def spend(self, steps: int, objects: dict[str, int]) -> None:
        """A function took so much, or its answer was taken over; and so much the objects that others share with it."""
        self._left -= steps + sum(took for name, took in objects.items() if name not in self._made)
        self._left = max(self._left, 0)
        self._made.update(objects)


def _rounded(steps: int) -> int:
    """Down to 1, 1.5, 2, 3, 4, 6, 8, ..."""
    power = 1 << max(steps.bit_length() - 1, 0)
    return power + power // 2 if steps >= power + power // 2 else power
