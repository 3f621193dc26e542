"""Names looked up in a dictionary, and code that stands in a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import (
    ClassV,
    DictV,
    External,
    Frame,
    Globals,
    Instance,
    ModuleV,
    TorchName,
    Value,
)
from gradguard.engine.models import others
from gradguard.engine.models.registry import Registry
from gradguard.engine.python import attributes, imports
from gradguard.engine.state.run import Run

MODELS = Registry()


class _Variables(MutableMapping[object, tuple[Value, Value]]):
    """Variables as the items of a dictionary: who changes one changes the other."""

    def __init__(self, run: Run, variables: dict[str, Value]) -> None:
        self._run, self._variables = run, variables

    def __getitem__(self, key: object) -> tuple[Value, Value]:
        value = self._variables[str(key)]
        if type(value) in imports.STAND_INS:
            value = imports.known(self._run, self._variables, str(key))
        return str(key), value

    def __setitem__(self, key: object, item: tuple[Value, Value]) -> None:
        self._variables[str(key)] = item[1]

    def __delitem__(self, key: object) -> None:
        del self._variables[str(key)]

    def __iter__(self) -> Iterator[object]:
        return iter(list(self._variables))

    def __len__(self) -> int:
        return len(self._variables)


@MODELS.external_function("builtins.globals", "builtins.locals")
def _scope(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    run.marks.by_name = True
    whole = call.name == "globals" or isinstance(frame.variables, Globals)
    variables = frame.namespace.variables if whole else frame.variables
    return DictV(_Variables(run, variables), open=True, made=call.place)


@MODELS.external_function("builtins.vars")
def _vars(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    owner = call.get(0, "object")
    if isinstance(owner, Instance):
        return attributes.own_names(owner)
    if isinstance(owner, (TorchName, External)):
        return type(owner)(f"{owner.path}.__dict__")
    if isinstance(owner, ModuleV):
        return DictV(_Variables(run, imports.loaded(run, owner.namespace)), open=True, made=call.place)
    if isinstance(owner, ClassV):
        return run.fresh()
    if call.args:
        return _unread(run, frame, call, node)
    return _scope(run, frame, call, node)


MAX_TEXT = 2000
"""Characters of a text that is read as code."""


@MODELS.external_function("builtins.eval", "builtins.exec")
def _text(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Code in a text that is known acts like code that stands there."""
    text = call.get(0, "source")
    if not isinstance(text, str) or len(call.args) > 1 or call.kwargs or len(text) > MAX_TEXT:
        return _unread(run, frame, call, node)
    parsed = _parsed(text, call.name, node)
    if isinstance(parsed, ast.Expression):
        return run.python.evaluate(run, frame, parsed.body)
    if isinstance(parsed, ast.Module):
        for _ in run.python.execute(run, frame, parsed.body):
            pass
        return None
    return _unread(run, frame, call, node)


def _unread(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    run.marks.by_name = True
    others.escaped(run, call, node)
    return run.fresh()


def _parsed(text: str, mode: str, node: ast.AST) -> ast.AST | None:
    """The code of a text, each part of which stands where the call stands; None for what does not parse."""
    # Remembered on the tree itself, since a place is known by its node.
    known: dict[str, ast.AST | None] | None = getattr(node, "_gradguard_texts", None)
    if known is None:
        known = node._gradguard_texts = {}  # type: ignore[attr-defined]
    if text not in known:
        try:
            made: ast.AST | None = ast.parse(text.strip(), mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            made = None
        for part in ast.walk(made) if made is not None else ():
            ast.copy_location(part, node)
        known[text] = made
    return known[text]
