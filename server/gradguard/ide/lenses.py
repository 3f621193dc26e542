"""Code lenses: at each `backward()`, how many tensors stay saved for it."""

from __future__ import annotations

from dataclasses import dataclass

from gradguard.findings import Span
from gradguard.ide.analysis import Analysis
from gradguard.ide.wording import Wording


@dataclass(frozen=True, slots=True)
class Lens:
    """A line of text above a stretch of the program."""

    span: Span
    title: str


def lenses(analysis: Analysis, wording: Wording) -> tuple[Lens, ...]:
    """Lenses of a program, in order."""
    return ()
