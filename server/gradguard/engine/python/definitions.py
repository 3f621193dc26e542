"""Functions, classes and decorators."""

from __future__ import annotations

import ast
import re

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.values import (
    BuiltinMethod,
    ClassV,
    ContextV,
    External,
    Frame,
    FunctionV,
    NativeV,
    TorchName,
    Value,
)
from gradguard.engine.python import enumerations
from gradguard.engine.python.functions import make_function
from gradguard.engine.state.run import Run

_DROPPED = frozenset({
    "functools.wraps", "functools.lru_cache", "functools.cache", "typing.overload", "abc.abstractmethod", "typing.no_type_check",
    "torch.jit.export", "torch.jit.ignore", "torch.jit.unused", "torch.jit.script", "torch.compiler.disable", "numba.jit",
    "torch.jit.script_if_tracing", "typing.final", "dataclasses.field",
})  # fmt: skip


def function(run: Run, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """The value of a `def`, with its decorators applied."""
    made = make_function(run, frame, node, node.name)
    value: Value = made
    for decorator in reversed(node.decorator_list):
        value = _decorate(run, frame, value, run.python.evaluate(run, frame, decorator), decorator)
    return value


def _decorate(run: Run, frame: Frame, value: Value, decorator: Value, node: ast.expr) -> Value:
    if isinstance(value, FunctionV):
        if isinstance(decorator, ContextV):
            if decorator.mode == "set_grad" and decorator.modes is not None:
                run.modes = decorator.modes
            if decorator.mode in GRAD_MODES:
                value.modes = (*value.modes, (decorator.mode, known_truth(decorator.flag)))
            return value
        if isinstance(decorator, TorchName) and decorator.path.rpartition(".")[2] in GRAD_MODES - {
            "set_grad"
        }:
            value.modes = (*value.modes, (decorator.path.rpartition(".")[2], True))
            return value
        path = getattr(decorator, "path", "")
        if path in (
            "builtins.staticmethod",
            "builtins.classmethod",
            "builtins.property",
            "functools.cached_property",
        ):
            value.kind = path.rpartition(".")[2]
            return value
        if path in ("contextlib.contextmanager", "contextlib.asynccontextmanager"):
            value.kind = "contextmanager"
            return value
        if path == "torch.compile":
            value.compiled = True
            return value
    if isinstance(decorator, NativeV) and decorator.name == "compile" and isinstance(value, FunctionV):
        value.compiled = True
        return value
    if isinstance(decorator, (External, TorchName)) and decorator.path in _DROPPED:
        if isinstance(value, FunctionV) and "cache" in decorator.path:
            value.kept = True
        return value
    if isinstance(decorator, (FunctionV, NativeV, ClassV)) or classes.callable_instance(decorator):
        call = Call([value], {}, run.place(frame, node), [node], {})
        wrapped = run.python.call(run, frame, decorator, call, node)
        return (
            wrapped
            if isinstance(wrapped, (FunctionV, NativeV)) or classes.callable_instance(wrapped)
            else value
        )
    if isinstance(node, ast.Attribute) and node.attr in ("setter", "deleter", "getter"):
        getter = decorator.receiver if isinstance(decorator, BuiltinMethod) else None
        if not isinstance(getter, FunctionV) or getter.kind != "property" or not isinstance(value, FunctionV):
            return value
        if node.attr == "getter":
            value.kind, value.setter = "property", getter.setter
            return value
        if node.attr == "setter":
            getter.setter = value
        return getter
    # A decorator of unknown make most often returns something that calls the function.
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(value, FunctionV) and _REMEMBERS.search(ast.unparse(named).lower()):
        value.kept = value.kept or None
    return value


_REMEMBERS = re.compile(r"cache|memo(?!r)")
"""In the names of decorators after which a function does not run again for arguments that it had."""

GRAD_MODES = frozenset({"no_grad", "enable_grad", "set_grad", "inference_mode"})


def _frozen(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and any(
        keyword.arg == "frozen" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in decorator.keywords
    )


def class_(run: Run, frame: Frame, node: ast.ClassDef) -> Value:
    """The value of a `class` statement."""
    bases = [run.python.evaluate(run, frame, base) for base in node.bases]
    made = ClassV(node.name, bases, {}, node, frame.namespace)
    body = Frame(
        frame.namespace, made.attributes, parent=frame if frame.function is not None else None, owner=None
    )
    execute = run.python.execute if run.functions else run.python.execute_pieces
    run.suspended.append(body)
    try:
        for _ in execute(run, body, node.body):
            pass
    finally:
        run.suspended.remove(body)
    for value in made.attributes.values():
        if isinstance(value, FunctionV) and value.owner is None:
            value.owner = made
            # Methods do not see the class body's names.
            value.scope = frame if frame.function is not None else None
            if isinstance(value.setter, FunctionV):
                value.setter.owner, value.setter.scope = made, value.scope
    if enumerations.is_enumeration(made):
        enumerations.make_members(made)
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            made.fields.append(
                (
                    statement.target.id,
                    made.attributes.get(statement.target.id, run.fresh(text=statement.target.id)),
                )
            )
    _tell_base(run, frame, made, node)
    for decorator in node.decorator_list:
        path = getattr(
            run.python.evaluate(run, frame, decorator.func if isinstance(decorator, ast.Call) else decorator),
            "path",
            "",
        )
        if path.endswith(("dataclasses.dataclass", "attr.s", "attrs.define", "attrs.frozen", "dataclass")):
            made.dataclass = True
            made.frozen = path.endswith("frozen") or _frozen(decorator)
    return made


def _tell_base(run: Run, frame: Frame, made: ClassV, node: ast.ClassDef) -> None:
    """A base class of the program is told of each class that derives from it."""
    told = next(
        (
            base.attributes["__init_subclass__"]
            for base in classes.linear(made)[1:]
            if isinstance(base, ClassV) and "__init_subclass__" in base.attributes
        ),
        None,
    )
    if not isinstance(told, FunctionV):
        return
    given = {word.arg: run.python.evaluate(run, frame, word.value) for word in node.keywords if word.arg}
    call = Call([made], given, run.place(frame, node), [None], {})
    run.python.call(run, frame, told, call, node)
