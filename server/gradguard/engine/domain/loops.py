"""The loops and guards around a statement that runs."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from gradguard.engine.domain.tensors import Place
from gradguard.engine.domain.values import Cell, Container, Frame

Branch = tuple[ast.AST, bool]
"""A test of the program, and which way it went."""


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
    """Has, or may have, more passes than the engine runs."""
    assumed: int | None = None
    """The first pass that is only assumed: the second over the rows of a tensor of unknown size, and the first of a
    `while` whose test is unknown when it is reached. None where no pass is."""
    counted: dict[tuple[int, Hashable], tuple[Cell, bool]] = field(default_factory=dict)
    """Numbers that the pass has computed from their own last value (`n += 1`), each with whether it rises."""
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
