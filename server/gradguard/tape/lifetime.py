"""Graphs that outlive an iteration. Looked at when an iteration ends and when a loop ends."""

from __future__ import annotations

from gradguard.tape.frame import Frame, Loop
from gradguard.tape.run import Run


def iteration_ends(run: Run, frame: Frame, loop: Loop) -> None:
    """Called after each iteration."""


def loop_ends(run: Run, frame: Frame, loop: Loop) -> None:
    """Called when a loop is left."""
