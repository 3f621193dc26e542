"""The objects whose methods entries call, as they are kept."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.values import Value
from gradguard.engine.state.path import Given
from gradguard.engine.state.run import Left


@dataclass(slots=True)
class Made:
    """An object that methods share, and what making it decided and needed."""

    value: Value
    answers: dict[Hashable, bool]
    entered: frozenset[ast.AST]
    read: frozenset[str]
    devices: frozenset[str]
    limits: dict[str, None]
    faults: tuple[Fault, ...]


@dataclass(slots=True)
class Kept:
    """An object as a path made it, for the paths whose constructor decides the same."""

    made: Made
    given: Given
    left: Left
    steps: int


@dataclass(slots=True)
class Objects:
    """The objects of one class."""

    shared: Made | None
    """Where all paths of all methods have the same."""
    took: int
    """The steps it took to make that one, or to see that each path may make one."""
    kept: list[Kept] = field(default_factory=list)
    again: bool = True
    """Whether those of paths may be kept: making one leaves nothing but the object."""
