"""What came of growing and judging a program. Needs no torch, so that whoever asked a worker can read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """A program, what fixing made of it, and what is wrong with that (nothing where the fix is right)."""

    before: str
    after: str
    kinds: tuple[str, ...]
    """Of the fixes that were made."""
    rounds: int
    left: tuple[str, ...]
    """Codes that the fixed program is still reported for."""
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One in-place form that was offered, and what is wrong with it (nothing where it computes the same)."""

    kind: str
    before: str
    after: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotGrown:
    """The generator failed at this seed; its last words."""

    words: str
