"""The top level of an imported module, as far as anybody asks for it.

A library's modules define thousands of things, of which a file needs a few; most of the time that a load takes goes
into classes and their decorators. So a statement that only gives names their values waits until one of them is read:

    class Encoder(Module): ...          waits
    MODELS = make_registry()            waits
    SMALL = dict(MODELS)                waits with `MODELS`, which the call may change
    @register("decoder")                runs when the module does: who reads the table may not read this module
    class Decoder(Module): ...
    if available(): ...                 runs when the module does, and makes what it reads

It runs as if where it stands, see `imports`. Statements that give the same name its values, or that may change what a
name holds that is neither function nor class, wait and run together and in order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradguard.engine.domain.values import (
    MISSING,
    ClassV,
    External,
    FunctionV,
    Globals,
    ImportV,
    LazyV,
    ModuleV,
    Namespace,
    TorchName,
    Value,
)
from gradguard.source.nodes import children, walk

UNCHANGING = (FunctionV, ClassV, External, TorchName, ModuleV, ImportV)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A statement that may wait."""

    names: tuple[str, ...]
    """What it gives values, and those that wait with it."""
    changes: tuple[str, ...]
    """What calls in it are given, or are methods of."""
    data: bool


def plan(tree: ast.Module) -> tuple[Waiting | None, ...]:
    """For each statement of a top level what is so if it waits; None where it runs at once."""
    known: tuple[Waiting | None, ...] | None = getattr(tree, "_gradguard_waiting", None)
    if known is None:
        # Remembered on the tree itself, which lives as long as the answer does.
        known = tree._gradguard_waiting = _plan(tree)  # type: ignore[attr-defined]
    return known


def _plan(tree: ast.Module) -> tuple[Waiting | None, ...]:
    names = [_defined(statement) for statement in tree.body]
    giving: dict[str, list[int]] = {}
    for index, given in enumerate(names):
        for name in given:
            giving.setdefault(name, []).append(index)
    early = [name for statement, given in zip(tree.body, names) if not given for name in bound(statement)]
    # All that gives a name its values waits, or nothing does.
    while early:
        for index in giving.pop(early.pop(), ()):
            early += names[index]
            names[index] = ()
    together = _together(names)
    return tuple(
        Waiting(
            together[index], tuple(sorted(set(_changed(statement)))), not isinstance(statement, _DEFINITIONS)
        )
        if given
        else None
        for index, (statement, given) in enumerate(zip(tree.body, names))
    )


def _together(names: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """For each statement the names of all with which it waits.

    What stands between two statements that give one name its values may have seen the first of them.
    """
    last = {name: index for index, given in enumerate(names) for name in given}
    merged: list[tuple[str, ...]] = []
    index = 0
    while index < len(names):
        at = end = index
        while at <= end:
            end = max([end, *(last[name] for name in names[at])])
            at += 1
        block = tuple(dict.fromkeys(name for given in names[index : end + 1] for name in given))
        merged += [block] * (end + 1 - index)
        index = end + 1
    return merged


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


def _defined(statement: ast.stmt) -> tuple[str, ...]:
    """The names of a statement that does nothing but give them values; none where it takes no time to run."""
    if isinstance(statement, _DEFINITIONS):
        return () if any(map(_enters, statement.decorator_list)) else (statement.name,)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or isinstance(
        statement.value, (ast.Constant, type(None))
    ):
        return ()
    if any(_registers(part.func) for part in walk(statement) if isinstance(part, ast.Call)):
        return ()
    found: list[str] = []
    pending = [*statement.targets] if isinstance(statement, ast.Assign) else [statement.target]
    while pending:
        target = pending.pop()
        if isinstance(target, ast.Name):
            found.append(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            pending += target.elts
        else:
            return ()
    return tuple(found)


def _enters(decorator: ast.expr) -> bool:
    """Whether a decorator seems to put what it decorates into a table of another module.

    `@register_model`, `@TABLE.register(name)`, `@kernel_of(resize, Image)`
    """
    if not isinstance(decorator, ast.Call):
        return _registers(decorator)
    given = (*decorator.args, *(keyword.value for keyword in decorator.keywords))
    return _registers(decorator.func) or any(isinstance(one, (ast.Name, ast.Attribute)) for one in given)


def _registers(func: ast.expr) -> bool:
    return "regist" in ast.unparse(func).lower()


def bound(statement: ast.stmt) -> set[str]:
    """Names of the top level that a statement binds or deletes, in its blocks too."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        waiting += children(node)
    return found


def named(statement: ast.stmt) -> set[str]:
    """Names that are looked up while a statement runs, and not only when what it defines is called."""
    parts: list[ast.AST] = [statement]
    if isinstance(statement, _DEFINITIONS):
        parts = [*statement.decorator_list]
    if isinstance(statement, _FUNCTIONS):
        given = statement.args
        parts += [*given.defaults, *(one for one in given.kw_defaults if one is not None)]
    elif isinstance(statement, ast.ClassDef):
        parts += [*statement.bases, *(one.value for one in statement.keywords)]
    return {name for part in parts for name in _names(part)}


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Names whose values calls of the statement may change; what runs when a function is called does not count."""
    if isinstance(statement, _FUNCTIONS):
        arguments = statement.args
        given = [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]
        yield from _decorating(statement.decorator_list)
        yield from _in_calls(given)
    elif isinstance(statement, ast.ClassDef):
        yield from _decorating(statement.decorator_list)
        yield from _in_calls([*statement.bases, *(one.value for one in statement.keywords)])
        for inner in statement.body:
            yield from _changed(inner)
    else:
        yield from _in_calls([statement])


def _decorating(decorators: Iterable[ast.expr]) -> Iterator[str]:
    for decorator in decorators:
        yield from _names(decorator)


def _in_calls(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for outer in nodes:
        for node in walk(outer):
            if isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Name):
                    yield from _names(node.func)
                for argument in (*node.args, *(one.value for one in node.keywords)):
                    yield from _names(argument)


def _names(expression: ast.AST) -> Iterator[str]:
    return (node.id for node in walk(expression) if isinstance(node, ast.Name))


def waits(namespace: Namespace, index: int, statement: ast.stmt, waiting: Waiting) -> bool:
    """Put a statement off; False where something of it was asked for already, so that it must run now."""
    variables = namespace.variables
    groups: dict[int, LazyV] = {}
    for name in waiting.names:
        value = dict.get(variables, name, MISSING)
        if type(value) is LazyV:
            groups[id(value)] = value
        elif value is not MISSING:
            return False
    for name in waiting.changes:
        value = dict.get(variables, name)
        if type(value) is LazyV:
            if value.data:
                groups[id(value)] = value
        elif value is not None and not isinstance(value, (*UNCHANGING, bool, int, float, str)):
            return False
    together = LazyV(namespace, set(waiting.names), [(index, statement)], waiting.data)
    for group in groups.values():
        together.names |= group.names
        together.statements += group.statements
        together.data = together.data or group.data
    together.statements.sort(key=lambda one: one[0])
    for name in together.names:
        dict.__setitem__(variables, name, together)
    return True


def given(variables: Globals, waiting: LazyV) -> dict[str, Value]:
    """The values that its statements gave, having run."""
    values = {name: dict.get(variables, name, MISSING) for name in waiting.names}
    return {name: value for name, value in values.items() if value is not MISSING and value is not waiting}
