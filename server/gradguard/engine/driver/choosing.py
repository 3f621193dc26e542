"""Which paths follow one that was run, by what its answers have decided (see `trail`).

    nothing          none: the other answer would show the same
    what happens     as below, but only where something seen is certain: it may be so no more
    anything else    a path each, and one for all of them

Many conditions share paths. A path each would meet no mistake that needs two of them answered otherwise, and one for
all of them none that needs a single one. So each of the shared paths answers about half of them otherwise, such that
of any two, whichever they are, some path answers both otherwise, some the one, some the other, and the first neither:

    conditions      a b c d         a, b, c, d otherwise
    first path      . . . .
                    . x x x
                    x . x x
                    x x . x
                    x x x .

Five of these do for ten conditions, and seven for 35 (Kleitman and Spencer, Families of k-independent sets).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from gradguard.engine.domain.events import Event
from gradguard.engine.driver import merging
from gradguard.engine.state.path import Oracle, Turn
from gradguard.engine.state.trail import Decided, Trail

FEW = 3
"""Conditions that get a path each."""

_Way = tuple[ast.AST, bool]


@dataclass(slots=True)
class Choices:
    """For one entry."""

    _met: set[ast.AST] = field(default_factory=set)
    """Tests that some path has asked."""
    _gone: set[_Way] = field(default_factory=set)
    """How tests were answered on paths that came to their end, and on those that were for one of them alone."""
    _together: list[_Together] = field(default_factory=list)

    def following(
        self,
        trail: Trail,
        oracle: Oracle,
        children: Iterable[Turn],
        events: Iterable[Event],
        turn: Turn | None = None,
        *,
        survived: bool = True,
    ) -> list[Turn]:
        """The paths to run after this one, which was `turn`; `children` answer one question otherwise.

        What other paths have asked was decided after them; here it is what only this one came to.
        """
        found = trail.decided(oracle)
        alone: dict[ast.AST, Turn] = {}
        acts: list[Turn] = []
        nameless: list[Turn] = []
        worst: dict[ast.AST, Decided] = {}
        first = len(oracle.given)
        for child in children:
            test, decided = oracle.asked[child.index], found[child.index]
            if decided is Decided.NOTHING or test in self._met:
                continue
            if test is None:
                nameless.append(child)
                continue
            first = min(first, child.index)
            if test in alone and decided is Decided.ALL:
                acts.append(child)
            alone.setdefault(test, child)
            worst[test] = max(worst.get(test, decided), decided)
        self._met.update(test for test in oracle.asked if test is not None)
        if survived:
            self._gone.update(
                (test, way) for test, way in zip(oracle.asked, oracle.given) if test is not None
            )
        lacks = any(one is Decided.LACK for one in worst.values())
        if lacks and not any(event.certain and merging.shows((event,)) for event in events):
            alone = {test: child for test, child in alone.items() if worst[test] is not Decided.LACK}
        turns = self._again(oracle, turn, survived=survived)
        given = tuple(oracle.given)
        for group in _groups(list(alone)):
            flips = {test: alone[test] for test in group}
            others = {**oracle.others, **{test: child.answer for test, child in flips.items()}}
            made = Turn(given, first, others, flips=False)
            self._together.append(_Together(made, oracle.others, flips))
            turns.append(made)
        if len(alone) <= FEW:
            turns += acts
        return turns + nameless

    def worth(self, turn: Turn | None) -> bool:
        """Whether to run a path now: what one for several conditions has not shown, another may have shown since."""
        made = self._of(turn)
        if made is None or not made.again:
            return True
        ways = [(test, child.answer) for test, child in made.alone.items()]
        if self._gone.issuperset(ways):
            return False
        if len(ways) == 1:
            self._gone.update(ways)
        return True

    def _of(self, turn: Turn | None) -> _Together | None:
        return next((one for one in self._together if one.turn is turn), None)

    def _again(self, oracle: Oracle, turn: Turn | None, *, survived: bool) -> list[Turn]:
        """What a path for several conditions has not shown: it did not come to some of them, or not to its end."""
        made = self._of(turn)
        if made is None or turn is None or len(made.alone) == 1:
            return []
        if survived:
            left = {test: child for test, child in made.alone.items() if test not in oracle.asked}
            parts = [left] if left and len(left) < len(made.alone) else []
        else:
            parts = [{test: child} for test, child in made.alone.items()]
        turns = []
        for part in parts:
            others = {**made.before, **{test: child.answer for test, child in part.items()}}
            turns.append(Turn(turn.given, turn.index, others, flips=False))
            self._together.append(_Together(turns[-1], made.before, part, again=True))
        return turns


@dataclass(frozen=True, slots=True)
class _Together:
    """A path that answers conditions otherwise."""

    turn: Turn
    before: Mapping[ast.AST, bool]
    """Answers that the path it follows was given."""
    alone: Mapping[ast.AST, Turn]
    """The paths for one condition each that it stands for."""
    again: bool = False
    """It is for those to which another such path did not come."""


def _groups(tests: Sequence[ast.AST]) -> Iterator[Iterable[ast.AST]]:
    """Those that one path each answers otherwise."""
    if len(tests) <= FEW:
        yield from ((test,) for test in tests)
        if len(tests) > 1:
            yield tests
        return
    # Each test keeps its first answer in as many of the paths, and no two tests in the same ones.
    paths = FEW
    while len(keeps := list(islice(combinations(range(paths), (paths - 1) // 2), len(tests)))) < len(tests):
        paths += 1
    yield from ([test for test, kept in zip(tests, keeps) if path not in kept] for path in range(paths))
