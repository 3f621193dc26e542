"""`try` statements: which handler runs, and which of them catches what torch raises."""

from __future__ import annotations

import ast

from gradguard.engine.domain import spelling
from gradguard.engine.domain.signals import Return, Signal, Steps
from gradguard.engine.domain.tensors import Place
from gradguard.engine.domain.values import Frame, Value
from gradguard.engine.state.path import PyRaise
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk


def try_(run: Run, frame: Frame, node: ast.Try) -> Steps:
    signal: Signal = None
    try:
        trail = run.trail
        trail.trying += bool(node.handlers)
        catching = _catching(run, frame, node)
        run.catching += catching
        try:
            try:
                signal = yield from run.python.execute(run, frame, node.body)
            finally:
                trail.trying -= bool(node.handlers)
                del run.catching[len(run.catching) - len(catching) :]
        except PyRaise as error:
            handler = _handler_for(node, error)
            if handler is None:
                raise
            signal = yield from _handle(run, frame, handler, error.value)
        else:
            if signal is None:
                key = ("raises", frame.namespace.path, node.lineno, run.iterations())
                if (
                    node.handlers
                    and not _only_leaves(node.handlers)
                    and run.oracle.decide(key, False, weak=True, at=node)
                ):
                    signal = yield from _handle(run, frame, node.handlers[0], run.fresh())
                else:
                    signal = yield from run.python.execute(run, frame, node.orelse)
    except PyRaise as error:
        signal = Return(error.value)
        raise
    finally:
        final = yield from _behind(run, frame, node.finalbody, signal)
    return final if final is not None else signal


def _catching(run: Run, frame: Frame, node: ast.Try) -> list[tuple[Place, Frame | None]]:
    """The handler of a `try` that catches what torch raises, where the program means to.

    `except RuntimeError` does, and a handler of any error around a few statements; one around a whole training only
    reports that it has failed.
    """
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = {spelling.source_text(kind).rpartition(".")[2] if kind is not None else "" for kind in kinds}
        if any(isinstance(part, ast.Raise) for statement in handler.body for part in walk(statement)):
            continue
        if "RuntimeError" in names:
            return [(run.place(frame, handler), None)]
        if names & {"", "Exception", "BaseException"}:
            return [(run.place(frame, handler), frame)] if len(node.body) <= FEW_TRIED else []
    return []


FEW_TRIED = 3
"""Statements in a `try` from which on a handler of any error is not taken to wait for this one."""


def _behind(run: Run, frame: Frame, body: list[ast.stmt], signal: Signal) -> Steps:
    """A block that runs while a value waits to be returned or raised."""
    if not body:
        return None
    mark = run.pend([signal.value] if isinstance(signal, Return) else [], past=True)
    try:
        return (yield from run.python.execute(run, frame, body))
    finally:
        del run.pending[mark:]


def _handle(run: Run, frame: Frame, handler: ast.ExceptHandler, value: Value) -> Steps:
    if handler.name is not None:
        frame.variables[handler.name] = value
    return (yield from run.python.execute(run, frame, handler.body))


def _only_leaves(handlers: list[ast.ExceptHandler]) -> bool:
    """Handlers that only pass on, print or raise need no path of their own."""
    return all(
        all(isinstance(s, (ast.Raise, ast.Pass, ast.Continue)) or harmless(s) for s in h.body)
        for h in handlers
    )


def _handler_for(node: ast.Try, error: PyRaise) -> ast.ExceptHandler | None:
    for handler in node.handlers:
        if handler.type is None or not error.name:
            return handler
        names = {
            part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "")
            for part in walk(handler.type)
        }
        if error.name in names or names & {"Exception", "BaseException"}:
            return handler
    return None


_HARMLESS_CALLS = frozenset({"print", "info", "debug", "warning", "log", "write", "add_scalar", "add_scalars", "append_text", "set_postfix", "set_description", "update_postfix", "flush", "item", "format", "round", "join", "len", "float", "int", "str", "mean", "time", "save"})  # fmt: skip


def harmless(statement: ast.stmt) -> bool:
    """A statement that prints or logs: it can only read."""
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    for part in walk(statement.value):
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            if name not in _HARMLESS_CALLS:
                return False
    return True
