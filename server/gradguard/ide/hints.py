"""Inlay hints: what autograd keeps, in the text."""

from __future__ import annotations

from dataclasses import dataclass

from gradguard.findings import Span
from gradguard.ide.analysis import Analysis
from gradguard.ide.wording import Wording


@dataclass(frozen=True, slots=True)
class Hint:
    """A few words behind a stretch of text."""

    span: Span
    label: str
    tooltip: str = ""


def hints(analysis: Analysis, wanted: Span, wording: Wording) -> tuple[Hint, ...]:
    """Hints inside a stretch, in order."""
    return ()
