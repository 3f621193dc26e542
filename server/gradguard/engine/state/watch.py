"""Which writes get an alias set: looking one up takes longer than the write."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradguard.engine.domain.tensors import Place


class Watch:
    """Which writes of an entry are looked at, on all of its paths together.

    A finding about a write needs an op that has kept what is written, or torch to refuse it. Each such write is looked
    at, and from then on every other that the same statement makes. Any statement is looked at the first time that
    a chain of calls leads to it: it may be `y += 1` in a function that one caller gives what nobody else has, and
    another what its own list holds.
    """

    __slots__ = ("_matters", "_seen", "every")

    def __init__(self, every: bool = False) -> None:
        self.every = every
        """Look at each write."""
        self._matters: set[ast.AST] = set()
        self._seen: set[tuple[ast.AST, ...]] = set()

    def worth(self, at: ast.AST, calls: Iterable[Place], matters: bool) -> bool:
        """Whether to look up the alias set of what the statement or constructor `at` writes."""
        if matters:
            self._matters.add(at)
        if self.every or at in self._matters:
            return True
        way = (at, *(call.node for call in calls))
        if way in self._seen:
            return False
        self._seen.add(way)
        return True
