"""Paths: which way each unknown condition goes, and how many ways are tried.

A path is one complete run of an entry point. Where a condition is not known the run asks its `Oracle`, which
follows a given prefix of answers and otherwise takes the default; the answers given are remembered by the
condition's structural key, so the same condition asked twice is answered the same way. The driver runs an entry
again with each answer flipped once before it flips two at a time, until the budget is used.

Running again costs the shared prefix, but nothing has to be copied, so the machine's objects can be as mutable
as torch's own.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from gradguard.engine.domain.keys import negated
from gradguard.engine.domain.values import Value

MAX_STEPS = 120_000
"""Evaluated tree nodes an entry may use over all of its paths."""
MAX_FUNCTION_STEPS = 40_000
"""The same for a function that the file itself does not call."""
IMPORT_STEPS = 180_000
"""The same for the top levels of imported modules, all together, and for reading them."""
MAX_PATHS = 12
FREE_WORK = 200_000
"""Work that is no evaluation of a node (values copied, nodes of a graph gone through) which a path has for nothing."""
WORK_A_STEP = 4
"""Units of the work beyond that which count as a step."""
OP_STEPS = 8
"""Steps that an operation on tensors counts for, as it takes longer than the evaluation of a node."""
FREE_OPS = 6_000
"""Operations that a path has for its nodes alone: few programs write down more of them. Of further ones each counts."""


class BudgetExceeded(Exception):
    """The step budget of an entry is used up."""


class PathEnd(Exception):
    """The path leaves the program (`sys.exit`)."""


class PyRaise(Exception):
    """The interpreted program raised `value`."""

    def __init__(self, value: Value, name: str = "") -> None:
        super().__init__(name)
        self.value = value
        self.name = name


@dataclass(frozen=True, slots=True)
class Given:
    """The questions that a stretch of a path asked from its beginning, and the answers."""

    given: tuple[bool, ...]
    defaults: tuple[bool, ...]
    """The answer that each question would have had without a prefix."""
    asked: tuple[ast.AST | None, ...]
    weak: tuple[bool, ...]
    far: tuple[bool, ...]
    answers: dict[Hashable, bool]
    habits: dict[Hashable, bool]

    def follows(self, prefix: tuple[bool, ...]) -> bool:
        """Whether a path with this prefix gives the same answers."""
        count = len(prefix)
        return self.given[:count] == prefix[: len(self.given)] and self.given[count:] == self.defaults[count:]


@dataclass(frozen=True, slots=True)
class Turn:
    """A path that gives the answers of an earlier path up to some question, and there the opposite answer."""

    given: tuple[bool, ...]
    """All answers of the earlier path."""
    index: int
    others: Mapping[ast.AST, bool] = field(default_factory=dict)
    """Tests of the program that it answers in this way, from the question on."""
    flips: bool = True
    """It answers the question itself otherwise."""

    @property
    def prefix(self) -> tuple[bool, ...]:
        """The answers with which it begins."""
        return (*self.given[: self.index], self.answer) if self.flips else self.given[: self.index]

    @property
    def answer(self) -> bool:
        """Its answer to the question at which the two paths part."""
        return not self.given[self.index]


class Oracle:
    """Decides each branch on an unknown condition along one path."""

    __slots__ = (
        "_index",
        "_last",
        "answers",
        "asked",
        "clock",
        "defaults",
        "elsewhere",
        "far",
        "follows",
        "given",
        "habits",
        "leaning",
        "made",
        "others",
        "prefix",
        "uses",
        "weak",
    )

    def __init__(self, prefix: tuple[bool, ...] = (), others: Mapping[ast.AST, bool] | None = None) -> None:
        self.prefix = prefix
        self.others = others or {}
        """How tests are answered behind the prefix, where not by default."""
        self.given: list[bool] = []
        self.defaults: list[bool] = []
        """The answer that each question would have had without a prefix."""
        self.answers: dict[Hashable, bool] = {}
        self.asked: list[ast.AST | None] = []
        """The test in the program that asked for each answer; None if the engine asked."""
        self.weak: list[bool] = []
        self.elsewhere = False
        """Code of another file runs for a top level: that of an imported module, or a function that a script calls."""
        self.far: list[bool] = []
        """Whether each answer was given to such code."""
        self.habits: dict[Hashable, bool] = {}
        """The last answer given at each test of a loop's body."""
        self.leaning = True
        """What is answered by default."""
        self.clock = 0
        """Counts the questions, those included that were answered before."""
        self.uses: list[list[int]] = []
        """When each answer was used: where it was given, and where it was asked again."""
        self._index: dict[Hashable, int] = {}
        self.follows: dict[int, int] = {}
        """By an answer the next one that has its habit."""
        self._last: dict[Hashable, int] = {}

    def decide(
        self,
        key: Hashable,
        default: bool = True,
        *,
        weak: bool = False,
        habit: Hashable = None,
        at: ast.AST | None = None,
    ) -> bool:
        """Answer of the condition `key` on this path. Weak questions are flipped last.

        What a test of a loop's body answered in one pass it answers in the next, where nothing else is asked for:
        two passes that go the same way show what is carried from one to the other.
        """
        flipped = False
        while (inner := negated(key)) is not None:
            key, flipped = inner, not flipped
        known = self.answers.get(key)
        self.clock += 1
        if known is not None:
            if key in self._index:
                self.uses[self._index[key]].append(self.clock - 1)
            return known is not flipped
        if flipped:
            default, habit = not default, None if habit is None else ("not", habit)
        index = len(self.given)
        if habit is not None:
            default = self.habits.get(habit, default)
        if index < len(self.prefix):
            answer = self.prefix[index]
        elif at is not None and at in self.others:
            answer = self.others[at]
        else:
            answer = default
        if habit is not None:
            self.habits[habit] = answer
            earlier = self._last.get(habit)
            if earlier is not None:
                self.follows[earlier] = index
            self._last[habit] = index
        self._index[key] = index
        self.uses.append([self.clock - 1])
        self.given.append(answer)
        self.defaults.append(default)
        self.asked.append(at)
        self.weak.append(weak)
        self.far.append(self.elsewhere)
        self.answers[key] = answer
        return answer is not flipped

    def gone(self) -> Given:
        """All that was asked so far."""
        return Given(
            tuple(self.given),
            tuple(self.defaults),
            tuple(self.asked),
            tuple(self.weak),
            tuple(self.far),
            dict(self.answers),
            dict(self.habits),
        )

    def go(self, way: Given) -> None:
        """Give answers that a path with this prefix would give; it has given none yet."""
        self.given += way.given
        self.defaults += way.defaults
        self.asked += way.asked
        self.weak += way.weak
        self.far += way.far
        self.uses += [[] for _ in way.given]
        self.answers.update(way.answers)
        self.habits.update(way.habits)

    def children(self, *, elsewhere: bool = True) -> list[Turn]:
        """Paths that answer one question otherwise that was asked after the own prefix; strong questions first.

        elsewhere: also the answers given to code of another file that runs for a top level.
        """
        start = len(self.prefix)
        indices = sorted(range(start, len(self.given)), key=lambda i: self.weak[i])
        if not elsewhere:
            indices = [i for i in indices if not self.far[i]]
        given = tuple(self.given)
        return [Turn(given, i, self.others) for i in indices]
