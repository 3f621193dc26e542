"""What a path did, statement by statement, as far as it tells whether another way of a condition can show anything.

A stretch of a path, one statement with all that it called, asked some conditions. Where nothing happened in it that the
tape notices, and where all code of it that did not run is idle (see `relevance`), answering them otherwise leads to
the same state behind it, and shows nothing on the way: such answers are settled.

    if args.seed is None:            asked here, and nowhere else
        args.seed = int(time())      ran, and put one unknown value in the place of another
    else:
        print("seed", args.seed)     did not run, and would only print: settled

An unknown value stands for all values, so that a name which holds one shows whatever another value would.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

from gradguard.engine.domain import relevance
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.relevance import CHANGING, PURE, TENSOR_ONLY, Idle, Scope
from gradguard.engine.domain.values import MISSING, External, Frame, FunctionV, Instance, Sym, Value
from gradguard.engine.state.path import Oracle
from gradguard.source.blocks import blocks


class State(Protocol):
    """What a trail asks of the path that it belongs to."""

    oracle: Oracle
    modes: Modes
    functions: list[FunctionV]

    made: int
    """The number of the last value that was made."""


class Decided(enum.IntEnum):
    """What hangs on an answer, the more the later."""

    NOTHING = 0
    LACK = 1
    """Whether something happens that nobody can miss."""
    NEW = 2
    """Which tensors there are."""
    ALL = 3


_OPEN_KINDS = frozenset({"any", "number", "int", "str", "bool", "index"})
SHARED = 1_000_000
"""From here on numbers are those of tensors that several entries share."""
_CONSTANTS = (type(None), bool, int, float, str, bytes)


def unknown(value: Value) -> bool:
    """Whether a value may be any plain one: it is no tensor, and holds none."""
    if type(value) is Sym:
        return value.tensor is None and value.kind in _OPEN_KINDS and (value.kind != "any" or not value.data)
    return type(value) is External


def plain(value: Value) -> bool:
    """Whether a value is unknown in this way, or a constant."""
    return type(value) in _CONSTANTS or unknown(value)


def _no_tensor(value: Value) -> bool:
    """Whether reading a value reads no tensor: it is plain, or comes out of data and was never used as one."""
    return plain(value) or (type(value) is Sym and value.tensor is None and value.kind in _OPEN_KINDS)


class Mark(NamedTuple):
    """Where a stretch begins."""

    clock: int
    touched: int
    acted: int
    wrote: int
    made: int
    changed: int
    ran: int
    partial: int
    modes: object


class Trail:
    """Of one path."""

    __slots__ = (
        "_decided",
        "_home",
        "_tree",
        "acted",
        "changed",
        "entry",
        "partial",
        "ran",
        "touched",
        "trying",
        "written",
    )

    def __init__(self, home: str = "", tree: ast.Module | None = None) -> None:
        """`tree`: what binds the names at the top level of the file `home`."""
        self._home, self._tree = home, tree
        self.touched = 0
        """Counts what the tape notices: tensors made, written, read or given away, events, modes, objects of torch."""
        self.acted = 0
        """Counts what of it is more than new tensors."""
        self.written: list[int] = []
        """Numbers of the tensors whose memory was written."""
        self.changed: list[str] = []
        """Names, and attributes as `.name` and items as `[]`, that got a value which is not unknown, or lost one."""
        self.ran: list[ast.stmt] = []
        self.partial: list[bool] = []
        """Of each call that asked a condition and has ended: whether what did not run of its function is idle."""
        self.entry: ast.AST | None = None
        """The function that is run, once the object that it is called on is made."""
        self.trying = 0
        """Blocks around whose exceptions are caught."""
        self._decided: dict[int, Decided] = {}
        """By the time of a question, what the innermost stretch says."""

    def act(self) -> None:
        """Something happens that is more than a new tensor."""
        self.touched += 1
        self.acted += 1

    def wrote(self, number: int) -> None:
        """Memory of the tensor with this number is written."""
        self.touched += 1
        self.written.append(number)

    def put(self, name: str, old: Value, new: Value) -> None:
        """A name, attribute or item gets a value. None stands for no old one."""
        if not (unknown(new) and plain(old)) and not (type(new) in _CONSTANTS and new is old):
            self.changed.append(name)

    def mark(self, run: State) -> Mark:
        """A stretch begins."""
        # Once for each statement: its own constructor takes twice the time.
        return tuple.__new__(
            Mark,
            (
                run.oracle.clock,
                self.touched,
                self.acted,
                len(self.written),
                run.made,
                len(self.changed),
                len(self.ran),
                len(self.partial),
                run.modes,
            ),
        )

    def refused(self, run: State, frame: Frame, node: ast.If, start: int) -> None:
        """The test of an `if` did not hold whose body would only have raised: nobody would have seen what follows."""
        if self._idle(run, frame, node.body[-1]) is not None and all(
            self._idle(run, frame, one) is not None for one in node.body
        ):
            self._decide(start, run.oracle.clock, settled=True)

    def ended(
        self, run: State, frame: Frame, body: list[ast.stmt], mark: Mark, *, last: bool = False
    ) -> None:
        """Statements that asked something came to their end. `last`: they are the last of a pass of a loop."""
        touched = mark.touched != self.touched or mark.modes is not run.modes
        if touched and all(time in self._decided for time in range(mark.clock, run.oracle.clock)):
            return
        idle = (
            mark.modes is run.modes
            and all(self.partial[mark.partial :])
            and all(self._unread(frame, body, name) for name in dict.fromkeys(self.changed[mark.changed :]))
            and self._idle_else(run, frame, body, mark, last)
        )
        self._decide(
            mark.clock,
            run.oracle.clock,
            settled=idle and not touched,
            lackable=idle,
            acted=not idle and self._acted(mark),
        )

    def left(self, run: State, mark: Mark) -> None:
        """A `return` that asked something was taken."""
        self._decide(mark.clock, run.oracle.clock, acted=self._acted(mark))

    def returned(self, run: State, frame: Frame, function: Scope, mark: Mark, result: Value) -> None:
        """A call came to its end: what it has bound goes with it."""
        changed = self.changed
        if len(changed) > mark.changed:
            changed[mark.changed :] = [name for name in changed[mark.changed :] if name[0] in ".["]
        if mark.clock != run.oracle.clock:
            # Nothing reads what the function that is the entry has made of its objects.
            outermost = function is self.entry and len(run.functions) == 1
            idle = mark.touched == self.touched and self._body(
                run, frame, function, mark, result, outermost=outermost
            )
            self.partial.append(idle)
            self._decide(mark.clock, run.oracle.clock, settled=idle and outermost, acted=self._acted(mark))

    def _acted(self, mark: Mark) -> bool:
        if mark.acted != self.acted or any(name[0] in ".[" for name in self.changed[mark.changed :]):
            return True
        # What was made in the stretch nobody has kept before it.
        return any(number <= mark.made or number >= SHARED for number in self.written[mark.wrote :])

    def _decide(
        self, start: int, end: int, *, settled: bool = False, lackable: bool = False, acted: bool = False
    ) -> None:
        found = Decided.LACK if lackable else Decided.ALL if acted else Decided.NEW
        known = self._decided
        for time in range(start, end):
            if settled:
                known[time] = Decided.NOTHING
            else:
                known.setdefault(time, found)

    def decided(self, oracle: Oracle) -> list[Decided]:
        """What each answer of a path has decided, by itself and by those that followed it by habit."""
        found: list[Decided] = []
        for uses in oracle.uses:
            # What was answered while an object was made only chose between objects.
            found.append(max([self._decided.get(time, Decided.ALL) for time in uses], default=Decided.NEW))
        for index in reversed(range(len(found))):
            following = oracle.follows.get(index)
            if following is not None:
                found[index] = max(found[index], found[following])
        return found

    def _idle_else(self, run: State, frame: Frame, body: list[ast.stmt], mark: Mark, last: bool) -> bool:
        for idle in self._missed(run, frame, body, set(self.ran[mark.ran :])):
            if idle is None or idle.returns or idle.breaks or (idle.continues and not last):
                return False
            for name in idle.binds:
                if not unknown(frame.variables.get(name)) and not self._unread(frame, body, name):
                    return False
        return True

    def _body(
        self, run: State, frame: Frame, function: Scope, mark: Mark, result: Value, *, outermost: bool = False
    ) -> bool:
        if isinstance(function, ast.Lambda) or mark.modes is not run.modes:
            return False
        if not all(self.partial[mark.partial :]):
            return False
        missed: list[ast.Return] = []
        ran = set(self.ran[mark.ran :])
        for idle in self._missed(run, frame, function.body, ran):
            if idle is None:
                return False
            missed += idle.returns
        if outermost or not missed or unknown(result):
            return True
        returns = [*missed, *(one for one in ran if isinstance(one, ast.Return))]
        return result is None and all(one.value is None for one in returns)

    def _unread(self, frame: Frame, body: list[ast.stmt], name: str) -> bool:
        if name[0] in ".[" or name in frame.outer_names:
            return False
        function = frame.function
        if function is None:
            # The top level of another file is known in part.
            whole = frame.parent is None and frame.namespace.path == self._home
            scope: ast.AST | None = self._tree if whole else None
        else:
            # What a class or a comprehension binds is read by others.
            scope = function.node if frame.site is not None else None
        return scope is not None and not relevance.reads_after(scope, body, name)

    def _missed(
        self, run: State, frame: Frame, body: list[ast.stmt], ran: set[ast.stmt]
    ) -> Iterator[Idle | None]:
        """What did not run of a block; None for what may not be idle."""
        for statement in body:
            if statement not in ran:
                yield self._idle(run, frame, statement)
                continue
            for part in relevance.optional(statement):
                yield self._idle(run, frame, part)
            loop = isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for block in blocks(statement):
                for idle in self._missed(run, frame, block, ran):
                    if loop and idle is not None and (idle.breaks or idle.continues):
                        idle = replace(idle, breaks=False, continues=False)
                    yield idle

    def _idle(self, run: State, frame: Frame, node: ast.stmt | ast.expr) -> Idle | None:
        idle = relevance.idle(node)
        if idle is None or (idle.raises and self.trying):
            return None
        if not all(self._harmless(run, frame, name) for name in idle.functions):
            return None
        if any(type(frame.variables.get(name)) not in (int, float, str) for name in idle.counts):
            return None
        for path in idle.paths:
            if path.partition(".")[0] not in idle.binds and not _no_tensor(self._value(frame, path)):
                return None
        for path, name in idle.methods:
            if name in TENSOR_ONLY or name in CHANGING:
                if not path or type(self._value(frame, path)) is not External:
                    return None
        return idle

    def _harmless(self, run: State, frame: Frame, name: str) -> bool:
        home = frame.find(name)
        variables = home.variables if home is not None else frame.namespace.variables
        if name not in variables:
            return name in PURE and not frame.namespace.stars
        return unknown(variables[name])

    def _value(self, frame: Frame, path: str) -> Value:
        """What a path leads to; `MISSING`, which is nothing plain, where that is not known."""
        name, *attributes = path.split(".")
        home = frame.find(name)
        variables = home.variables if home is not None else frame.namespace.variables
        if name not in variables:
            return MISSING if frame.namespace.stars else None
        value = variables[name]
        for attribute in attributes:
            if isinstance(value, Instance) and attribute in value.attributes:
                value = value.attributes[attribute]
            elif type(value) is Sym and value.tensor is None:
                if attribute not in value.attributes:
                    return value
                value = value.attributes[attribute]
            elif type(value) is not External:
                return MISSING
        return value
