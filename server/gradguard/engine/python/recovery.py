"""What a statement costs that meets a fault of the engine: what it binds, or may have changed, is unknown."""

from __future__ import annotations

import ast

from gradguard.engine.domain.values import ClassV, Frame, FunctionV, LazyV, Value
from gradguard.engine.python import lazy
from gradguard.engine.state.faults import Around, back, met
from gradguard.engine.state.run import Run


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
    bound = lazy.bound(node)
    for name in sorted(bound):
        if not _defined_in(node, dict.get(frame.variables, name)):
            frame.variables[name] = run.fresh(text=name)
    stay = (*lazy.UNCHANGING, LazyV, bool, int, float, str, type(None))
    for name in sorted(lazy.named(node) - bound):
        scopes: tuple[dict[str, Value], ...] = (frame.variables, frame.namespace.variables)
        for variables in scopes:
            held: Value = dict.get(variables, name)
            if not isinstance(held, stay):
                variables[name] = run.fresh(text=name)


def _defined_in(node: ast.stmt, value: Value) -> bool:
    """Whether a value is a function or class that the statement had defined by then."""
    if node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        return False
    if not isinstance(value, (FunctionV, ClassV)) or value.node is None:
        return False
    return node.lineno <= value.node.lineno <= (node.end_lineno or node.lineno)
