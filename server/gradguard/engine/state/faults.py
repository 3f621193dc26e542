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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradguard.engine.state.path import BudgetExceeded, PathEnd, PyRaise
from gradguard.findings import internal_error, traceback_of

if TYPE_CHECKING:
    from gradguard.engine.domain.frame import Frame
    from gradguard.engine.domain.values import Value
    from gradguard.engine.state.run import Run

NESTED = "nested too deeply"

ANYWHERE = MemoryError
"""What may strike at any instruction, also while something is put back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was met, as it is told."""

    node: ast.AST | None
    """The piece of the file that it cost; None where that is part of another file."""
    message: str
    traceback: str = ""
    """For the log; empty where the program is nested more deeply than Python can follow, which is no mistake of ours."""


def met(error: Exception, node: ast.AST | None, *, what: str = "", stopped: str = "stopped early") -> Fault:
    """The fault that an exception stands for, for the piece that it cost. Raises it where tests want to see it.

    what: what was not analysed to the end; stopped: the same where it is nested too deeply.
    """
    from gradguard.engine.driver import entry

    if isinstance(error, RecursionError):
        return Fault(node, f"{stopped}: {NESTED}")
    if entry.RERAISE:
        raise error
    return Fault(node, f"{what or 'not analysed'}: {internal_error(error)}", traceback_of(error))


def passes(run: Run, function: ast.AST, error: Exception) -> None:
    """An exception leaves a function that is interpreted. After a fault it is answered on its own, as if nobody called it."""
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


def statement(run: Run, frame: Frame, node: ast.stmt, error: Exception, where: Around) -> None:
    """A statement of a top level or class met a fault: tell it, and go on as if nobody knew what it does."""
    back(run, where)
    namespace = frame.namespace
    if namespace.path == run.home:
        run.faults.append(met(error, node))
        run.unsure = True
    else:
        namespace.fault = namespace.fault or met(error, None, what=PARTLY, stopped=PARTLY)
    _forget(run, frame, node)


PARTLY = "imported modules are read in part"


def _forget(run: Run, frame: Frame, node: ast.stmt) -> None:
    """Make unknown what a statement was to bind, and what it names that it may have changed."""
    from gradguard.engine.domain.values import LazyV
    from gradguard.engine.python import lazy

    bound = lazy.bound(node)
    for name in sorted(bound):
        if not _defined_in(node, dict.get(frame.variables, name)):
            frame.variables[name] = run.fresh(text=name)
    stay = (*lazy.UNCHANGING, LazyV, bool, int, float, str, type(None))
    for name in sorted(lazy.named(node) - bound):
        for variables in (frame.variables, frame.namespace.variables):
            if not isinstance(dict.get(variables, name), stay):
                variables[name] = run.fresh(text=name)


def _defined_in(node: ast.stmt, value: Value) -> bool:
    """Whether a value is a function or class that the statement had defined by then."""
    from gradguard.engine.domain.values import ClassV, FunctionV

    if node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        return False
    if not isinstance(value, (FunctionV, ClassV)) or value.node is None:
        return False
    return node.lineno <= value.node.lineno <= (node.end_lineno or node.lineno)
