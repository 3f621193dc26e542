"""How a block of statements ends."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum

from gradguard.engine.domain.values import Value


@dataclass(slots=True, frozen=True)
class Return:
    """The block returned from its function."""

    value: Value


class Jump(Enum):
    """The block left a pass of the loop around it."""

    BREAK = "break"
    CONTINUE = "continue"


Signal = Return | Jump | None
"""How a block ended; None if it ran to its last statement."""

Steps = Generator[Value, Value, Signal]
"""Statements that run: they yield what an interpreted generator yields."""
