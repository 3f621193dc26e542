"""Faults in the engine itself: what each of them costs, and how it is told.

A fault costs the smallest piece of a program that is answered on its own, and what hangs on it is unknown:

    a path of an entry     its other paths, and the other entries, run on
    a statement            of a top level or of a class in it: what it binds, or may have changed, is unknown
    an object              that an entry's method is called on: it is as its constructor found it

Which of these it was in is told at its line. An answer that a fault was met on the way to is never taken over into
the next version of a file: what was cut off half way may have left something behind.
"""

from __future__ import annotations

import ast
from typing import Any

from gradguard.engine.domain.fault import Fault
from gradguard.engine.state.path import BudgetExceeded, PathEnd, PyRaise
from gradguard.engine.state.run import Run
from gradguard.findings import internal_error, traceback_of

NESTED = "nested too deeply"

ANYWHERE = MemoryError
"""An error that any instruction may raise, even one that restores a state."""


def met(error: Exception, node: ast.AST | None, *, what: str = "", stopped: str = "stopped early") -> Fault:
    """The fault that an exception stands for, for the piece that it cost. Raises it where tests want to see it.

    what: what was not analysed to the end; stopped: the same where it is nested too deeply.
    """

    if isinstance(error, RecursionError):
        return Fault(node, f"{stopped}: {NESTED}")
    if RERAISE:
        raise error
    return Fault(node, f"{what or 'not analysed'}: {internal_error(error)}", traceback_of(error))


def passes(run: Run, function: ast.AST, error: Exception) -> None:
    """An exception leaves an interpreted function. After a fault the function becomes an entry point, as if it had no caller."""
    if not isinstance(error, (PyRaise, PathEnd, BudgetExceeded)):
        run.broken_off.add(function)


Around = list[tuple[str, Any, int]]

_STACKS = ("loops", "guards", "calls", "functions", "frames", "suspended", "pending")
_STATE = (
    "modes", "statement", "trace", "compiled", "depth", "step_site", "expected", "loading", "making", "devices", "budget",
)  # fmt: skip


def around(run: Run) -> Around:
    """Where a run stands before a piece of its own, for `back` after a fault in it."""
    stacks = [(name, getattr(run, name)) for name in _STACKS]
    return [(name, held, len(held)) for name, held in stacks] + [
        (name, getattr(run, name), -1) for name in _STATE
    ]


def back(run: Run, where: Around) -> None:
    """Leave all that the piece had entered."""
    for name, held, length in where:
        setattr(run, name, held)
        if length >= 0:
            del held[length:]


RERAISE = False
"""Set by tests and tools that want an engine fault to surface."""
