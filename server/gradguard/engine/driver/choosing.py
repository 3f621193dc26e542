"""Which paths follow one that was run, by what its answers have decided (see `trail`).

    nothing          none: the other answer would show the same
    what happens     one path for all of these, and that only where something seen is certain: it may be so no more
    which tensors    one path for all of these, and one for these with all others
    more than that   a path each

So a path of few conditions has a successor for each that acts. One of many has three at most: all that only choose
tensors are answered otherwise, all that do more, and all of both; so an arm that writes meets each choice of what it
writes, and that however many conditions there are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gradguard.engine.domain.events import Event
from gradguard.engine.driver import merging
from gradguard.engine.state.path import Oracle, Turn
from gradguard.engine.state.trail import Decided, Trail

FEW = 3
"""Conditions that are answered otherwise one by one, where they do more than choose tensors."""


@dataclass(slots=True)
class Choices:
    """For one entry."""

    _met: set[ast.AST] = field(default_factory=set)
    """Tests that some path has asked."""
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
            alone.setdefault(test, child)
            if decided is Decided.ALL:
                acts.append(child)
            worst[test] = max(worst.get(test, decided), decided)
        self._met.update(test for test in oracle.asked if test is not None)
        given = tuple(oracle.given)

        def together(tests: Iterable[ast.AST]) -> Turn:
            flips = {test: alone[test].answer for test in tests}
            made = Turn(given, first, {**oracle.others, **flips}, flips=False)
            self._together.append(_Together(made, oracle.others, {test: alone[test] for test in flips}))
            return made

        lacks = [test for test, one in worst.items() if one is Decided.LACK]
        certain = lacks and any(event.certain and merging.shows((event,)) for event in events)
        turns = self._again(oracle, turn, survived=survived)
        if len(alone) > FEW:
            tests = [test for test in alone if certain or worst[test] is not Decided.LACK]
            act = [test for test in tests if worst[test] is Decided.ALL]
            choose = [test for test in tests if worst[test] is not Decided.ALL]
            groups = [tests, choose, act] if act and choose else [tests]
            return [*turns, *(together(group) for group in groups if group), *nameless]
        new = [test for test, one in worst.items() if one is Decided.NEW]
        if new:
            turns.append(together(new))
        turns += acts + nameless
        if certain or (acts and len(alone) > 1):
            turns.append(together(alone))
        return turns

    def _again(self, oracle: Oracle, turn: Turn | None, *, survived: bool) -> list[Turn]:
        """What a path for several conditions has not shown: it did not come to some of them, or not to its end."""
        made = next((one for one in self._together if one.turn is turn), None)
        if made is None or turn is None:
            return []
        if not survived:
            singly = ({**made.before, test: child.answer} for test, child in made.alone.items())
            return [Turn(turn.given, turn.index, others, flips=False) for others in singly]
        left = {test: child for test, child in made.alone.items() if test not in oracle.asked}
        if not left or len(left) == len(made.alone):
            return []
        others = {test: child.answer for test, child in left.items()}
        following = Turn(turn.given, turn.index, {**made.before, **others}, flips=False)
        self._together.append(_Together(following, made.before, left))
        return [following]


@dataclass(frozen=True, slots=True)
class _Together:
    """A path for several conditions."""

    turn: Turn
    before: Mapping[ast.AST, bool]
    """Answers that the path it follows was given."""
    alone: Mapping[ast.AST, Turn]
    """The paths for one condition each that it stands for."""
