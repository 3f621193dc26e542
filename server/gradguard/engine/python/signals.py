"""How a block of statements ends."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from gradguard.engine.domain.values import Value


@dataclass(slots=True, frozen=True)
class RETURN:
    """The block returned from its function."""

    value: Value


BREAK = "break"


CONTINUE = "continue"


Steps = Generator[Value, Value, Value]
