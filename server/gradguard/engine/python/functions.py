"""Functions and lambdas as values, with their defaults."""

from __future__ import annotations

import ast

from gradguard.engine.domain.values import Frame, FunctionV
from gradguard.engine.state.run import Run


def make_function(
    run: Run, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
) -> FunctionV:
    """A function value with its defaults evaluated now."""
    made = FunctionV(node, name, frame if frame.function is not None else None, frame.namespace)
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for arg, default in zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults):
        made.defaults[arg.arg] = run.python.evaluate(run, frame, default)
    for arg, kw_default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        if kw_default is not None:
            made.defaults[arg.arg] = run.python.evaluate(run, frame, kw_default)
    return made
