"""Scopes: module namespaces, function frames, and the loops and guards around a statement."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradguard.engine.domain.tensors import Place

if TYPE_CHECKING:
    from gradguard.engine.domain.values import ClassV, FunctionV, Value
    from gradguard.engine.observe.counting import Cell, Container
    from gradguard.engine.state.faults import Fault


EVERYTHING = "*"
"""In the place of a name: every global was looked at."""


class Globals(dict[str, Any]):
    """Variables of a module's top level that remember which of them were asked for.

    What looks through all variables for something that only the running entry can have put there asks for
    nothing, and goes through the methods of `dict`.
    """

    __slots__ = ("read", "written")

    def __init__(self, start: dict[str, Any]) -> None:
        super().__init__(start)
        self.read: set[str] = set()
        self.written: set[str] = set()

    def begin(self) -> None:
        """An entry starts."""
        self.read, self.written = set(), set()

    def touched(self) -> Iterator[tuple[str, Any]]:
        """The variables that the running entry read or wrote, by name: of a long file's, these are few."""
        return (
            (name, dict.__getitem__(self, name))
            for name in sorted(self.read | self.written)
            if dict.__contains__(self, name)
        )

    def __contains__(self, name: object) -> bool:
        self.read.add(name)  # type: ignore[arg-type]
        return dict.__contains__(self, name)

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return dict.__getitem__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return dict.get(self, name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        self.written.add(name)
        dict.__setitem__(self, name, value)

    def __iter__(self) -> Iterator[str]:
        self.read.add(EVERYTHING)
        return dict.__iter__(self)

    def keys(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.keys(self)

    def values(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.values(self)

    def items(self) -> Any:
        self.read.add(EVERYTHING)
        return dict.items(self)


@dataclass(slots=True, eq=False)
class Namespace:
    """Globals of one file."""

    path: str
    name: str
    variables: Globals = field(default_factory=lambda: Globals({}))
    main: bool = False
    ran: bool = False
    """Its top level has run, or is running."""
    order: tuple[int, int] = (0, 0)
    """First and last number of the program order that are put aside for it."""
    partly: str = ""
    """Why its top level did not run to the end."""
    fault: Fault | None = None
    """What else it was that a statement of it did not."""
    devices: frozenset[str] = frozenset()
    """Devices that its top level names."""
    stars: list[Namespace] = field(default_factory=list)
    """Modules whose names it takes with `*`."""
    absent: set[str] = field(default_factory=set)
    """Names that none of them has."""


@dataclass(slots=True, eq=False)
class Frame:
    """One activation of a function, or of a module's or class's body."""

    namespace: Namespace
    variables: dict[str, Value]
    parent: Frame | None = None
    function: FunctionV | None = None
    receiver: Value = None
    owner: ClassV | None = None
    outer_names: dict[str, Frame] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, and where they live."""
    site: Place | None = None
    given: tuple[Value, ...] = ()
    """The arguments as they were passed."""
    clause: bool = False
    """The variables of a comprehension, which `:=` does not add to."""

    def find(self, name: str) -> Frame | None:
        """The frame that binds `name`, walking out through closures; None where nobody does."""
        declared = self.outer_names.get(name)
        if declared is not None:
            return declared
        frame: Frame | None = self
        while frame is not None:
            if name in frame.variables:
                return frame
            frame = frame.parent
        return None


@dataclass(slots=True, eq=False)
class Loop:
    """A loop that is running."""

    number: int
    place: Place
    iteration: int = 0
    started: int = 0
    """Program order when the loop was entered."""
    began: int = 0
    """Program order at the beginning of the iteration."""
    kind: str = "for"
    """`for`, `while`, `comprehension`, `closure`."""
    inner: bool = False
    """A loop ran inside its body."""
    over: str = ""
    """What it iterates: `parameters`, `tensor`, `data`, or empty."""
    exact: bool = False
    long: bool = False
    """Has more passes, or may have, than are run."""
    assumed: bool = False
    """Over the rows of a tensor of unknown size: that there is a second pass is assumed."""
    counted: dict[tuple[int, Hashable], tuple[Cell, bool]] = field(default_factory=dict)
    """Numbers that the pass has made from themselves; with each, whether it rises."""
    passed: dict[ast.If, int] = field(default_factory=dict)
    """Tests of a counter, and the pass in which each was passed for the first time."""
    late: list[ast.If] = field(default_factory=list)
    """Tests of a counter that were passed for the first time after the first pass: one more pass repeats them."""
    grown: dict[int, Container] = field(default_factory=dict)
    """Containers that the pass has put items into."""
    length: int = 0
    """Number of iterations of an exact loop."""
    passes: int = 0
    """How many iterations have ended."""
    ends: list[int] = field(default_factory=list)
    """Program order at the end of each of them."""
    guards: int = 0
    """Number of guards in force when the loop began."""
    depth: int = 0
    """Module calls around the loop."""
    functions: int = 0
    """Function calls around the loop."""
    nodes: int = 0
    """Nodes recorded before it."""
    trains: bool = False
    """A backward or an optimizer step ran inside."""
    frame: Frame | None = None
    """The activation that it runs in."""
    calls: bool = False
    """A module was called from its body, not from inside another module."""


@dataclass(slots=True, frozen=True)
class Guard:
    """An `if` whose condition is not known and whose body is running."""

    place: Place
    periodic: bool
    """Tests a counter (`step % 100 == 0`), a flag or a logger's level: not taken on every pass."""
    data: bool = False
    """Tests a tensor's value."""
