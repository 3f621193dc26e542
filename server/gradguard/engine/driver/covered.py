"""Which further paths are worth running where nothing is on the tape.

An entry that only puts values together and calls, as one that makes a network does, runs the same code as its
neighbours in the file. A path of it that recorded nothing and showed nothing has no state that another way of a
test could meet: all that such a way can do is to run code that has not been run. So where a path like that took
the way before, for this entry or another, it is not taken again.

    def resnet18(): return _create(ResNet([2, 2, 2, 2]))      tries each way of the tests in `ResNet` and `_create`
    def resnet50(): return _create(ResNet([3, 4, 6, 3]))      tries those that no other has tried
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gradguard.engine.state.path import Oracle, Turn

Way = tuple[ast.AST, bool]
"""A test of the program, and how it was answered."""

NO_WAYS: frozenset[Way] = frozenset()


@dataclass(slots=True)
class Ways:
    """The ways that quiet paths of a file's entries have gone so far."""

    _gone: set[Way] = field(default_factory=set)

    def explore(self) -> Choice:
        """For one entry; what it goes counts for others once it is added."""
        return Choice(self._gone)

    def add(self, gone: frozenset[Way]) -> None:
        """An entry was run, or its answer taken over."""
        self._gone |= gone

    def stand(self, taken: frozenset[Way], spared: frozenset[Way]) -> bool:
        """Whether an entry would choose as it did when it was run."""
        return spared <= self._gone and self._gone.isdisjoint(taken)


@dataclass(slots=True)
class Choice:
    """The paths of one entry."""

    _before: set[Way]
    gone: set[Way] = field(default_factory=set)
    taken: set[Way] = field(default_factory=set)
    """Ways that were gone because no other entry had."""
    spared: set[Way] = field(default_factory=set)
    """Ways that were not gone because another entry had."""

    def went(self, oracle: Oracle) -> None:
        """A quiet path came to its end."""
        self.gone.update(
            (test, answer) for test, answer in zip(oracle.asked, oracle.given) if test is not None
        )

    def flipped(self, oracle: Oracle, turn: Turn) -> tuple[Way, ...]:
        """The ways that a child of a quiet path takes; none where it stands for more than that."""
        if not turn.flips:
            return tuple((test, way) for test, way in turn.others.items() if test not in oracle.others)
        test = oracle.asked[turn.index]
        return () if test is None else ((test, turn.answer),)

    def worth(self, ways: tuple[Way, ...]) -> bool:
        """Whether to take them now."""
        new = [way for way in ways if way not in self.gone]
        if ways and not new:
            return False
        if ways and self._before.issuperset(new):
            self.spared.update(new)
            return False
        self.taken.update(way for way in new if way not in self._before)
        return True
