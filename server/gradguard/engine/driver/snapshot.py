"""Putting shared definitions back as they were.

The top level of a file runs once for all entries that are functions. What one entry does to a global (a list it
appends to, a counter it bumps, an unknown value it found to be a tensor) must not be seen by the next, or the
answer for one function would depend on which others were run before it.

An entry can change only what the globals it touched lead to. A library defines thousands of things and an entry
touches a few of them, so what each thing leads to is remembered, and only what was in reach is put back.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from gradguard.engine.domain.tensors import Memory, Tensor, Tri, Version
from gradguard.engine.domain.values import (
    EVERYTHING,
    NOTED,
    ArrayV,
    BuiltinMethod,
    ClassV,
    ContextV,
    DictV,
    Frame,
    FunctionV,
    Globals,
    Instance,
    IteratorV,
    LazyV,
    ListV,
    Method,
    Namespace,
    NativeV,
    PartialV,
    SuperV,
    Sym,
    TupleV,
    Value,
)

_TENSOR_FIELDS = tuple(name for name in Tensor.__slots__ if name not in ("memory", "counter"))

Undo = Callable[[], None]

TENSOR, VARIABLES = 8, 8
"""Other values that take as long to put back as a tensor, and variables that take as long as one."""


class Snapshot:
    """Remembers everything mutable that the given scopes reach."""

    def __init__(self, frames: Iterable[Frame], namespaces: Iterable[Namespace]) -> None:
        self._scopes: list[tuple[Globals, dict[str, Value]]] = []
        self._seen: dict[int, _Held] = {}
        self._functions: list[tuple[FunctionV, tuple[tuple[str, Tri], ...], bool]] = []
        self._tensors: list[_Held] = []
        """Those of the scopes: a backward finds its leaves without their names."""
        self._lent: list[Value] = []
        for frame in frames:
            assert isinstance(frame.variables, Globals)
            self._scope(frame.variables, self._tensors)
        self.add(namespaces)

    def add(self, made: Iterable[Namespace | LazyV]) -> None:
        """Remember these as they are now, too."""
        for one in made:
            if isinstance(one, LazyV):
                values = tuple((one.made or {}).values())
                self._seen[id(one)] = _Held(one, _nothing, values)
                self._reach([*values], self._tensors)
            else:
                self._scope(one.variables, self._tensors)

    def keep(self, value: Value) -> None:
        """Remember one value as it is now, too; `lend` it to the entries that use it."""
        self._reach([value], [])

    def lend(self, value: Value) -> None:
        """The running entry gets a value that was kept."""
        self._lent.append(value)

    def restore(self, *, functions: bool) -> int:
        """Put everything back; functions only where one was seen to change, which is rare. Returns how much it was."""
        pending: list[Part] = [*self._lent]
        self._lent = []
        undone = TENSOR * len(self._tensors)
        for variables, copy in self._scopes:
            touched = variables.read | variables.written
            if variables.written:
                # Cheaper than to ask whether they differ, and the order is as it was.
                variables.clear()
                variables.update(copy)
                undone += len(copy) // VARIABLES
            if EVERYTHING in touched:
                pending += copy.values()
            else:
                pending += [copy[name] for name in touched if name in copy]
        for held in self._tensors:
            held.undo()
        done: set[int] = set()
        seen = self._seen
        while pending:
            number = id(pending.pop())
            if number in done:
                continue
            done.add(number)
            found = seen.get(number)
            if found is not None:
                found.undo()
                pending += found.parts
        if functions:
            for function, modes, compiled in self._functions:
                function.modes, function.compiled = modes, compiled
            undone += len(self._functions) // VARIABLES
        return undone + len(done)

    def _scope(self, variables: Globals, tensors: list[_Held]) -> None:
        if id(variables) in self._seen:
            return
        copy = dict(dict.items(variables))
        self._seen[id(variables)] = _Held(variables, _nothing, [])
        self._scopes.append((variables, copy))
        self._reach(list(copy.values()), tensors)

    def _reach(self, pending: list[Part], tensors: list[_Held]) -> None:
        """Remember values and all that they lead to; tensors go into the list, too."""
        seen = self._seen
        while pending:
            value = pending.pop()
            save = _SAVES.get(type(value))
            if save is None or id(value) in seen:
                continue
            undo, parts = save(value)
            held = seen[id(value)] = _Held(value, undo, [part for part in parts if type(part) in _SAVES])
            pending += held.parts
            if type(value) is FunctionV:
                self._functions.append((value, value.modes, value.compiled))
            elif type(value) is Tensor:
                tensors.append(held)


class _Held:
    """One value as it was, and what it led to."""

    __slots__ = ("parts", "undo", "value")

    def __init__(self, value: object, undo: Undo, parts: Sequence[Part]) -> None:
        self.value = value
        """So that nothing else gets its place in memory."""
        self.undo = undo
        self.parts = parts


Part: TypeAlias = "Value | dict[str, Value]"
"""A value, or the variables or attributes of one."""

Saved = tuple[Undo, Iterable[Part]]


def _nothing() -> None:
    """Undo for what cannot change, or is no affair of an entry."""


def _mapping(held: dict[str, Value]) -> Saved:
    copy = dict(held)

    def undo() -> None:
        held.clear()
        held.update(copy)

    return undo, copy.values()


def _list(value: ListV) -> Saved:
    items, is_open, counted, escaped = list(value.items), value.open, value.counted, value.escaped

    def undo() -> None:
        value.items[:] = items
        value.open, value.counted, value.escaped = is_open, counted, escaped

    return undo, items


def _tuple(value: TupleV) -> Saved:
    return _nothing, value.items


def _dict(value: DictV) -> Saved:
    items, is_open, counted, escaped = dict(value.items), value.open, value.counted, value.escaped

    def undo() -> None:
        value.items.clear()
        value.items.update(items)
        value.open, value.counted, value.escaped = is_open, counted, escaped

    return undo, [*(item for _, item in items.values()), value.factory]


def _instance(value: Instance) -> Saved:
    training, hooks, compiled = value.training, list(value.hooks), value.compiled
    escaped = value.escaped
    stored = set(value.stored)

    def undo() -> None:
        value.training, value.compiled, value.escaped = training, compiled, escaped
        value.hooks[:] = hooks
        value.stored = stored

    return undo, [value.attributes, value.cls, *(hook.function for hook in hooks)]


def _class(value: ClassV) -> Saved:
    return _nothing, [value.attributes, *value.bases, *(default for _, default in value.fields)]


def _context(value: ContextV) -> Saved:
    modes, versions, place = value.modes, value.versions, value.place

    def undo() -> None:
        value.modes, value.versions, value.place = modes, versions, place

    return undo, [value.value]


def _function(value: FunctionV) -> Saved:
    parts: list[Part] = [*value.defaults.values(), value.owner, value.setter]
    if value.attributes:
        parts.append(value.attributes)
    scope = value.scope
    while scope is not None:
        parts.append(scope.variables)
        scope = scope.parent
    return _nothing, parts


def _unknown(value: Sym) -> Saved:
    fields = [(name, getattr(value, name)) for name in ("kind", "tensor", "text", *NOTED)]
    attributes, items = dict(value.attributes), dict(value.items)

    def undo() -> None:
        for name, held in fields:
            setattr(value, name, held)
        for now, then in ((value.attributes, attributes), (value.items, items)):
            if now != then:
                now.clear()
                now.update(then)

    parts: list[Part] = [value.tensor, value.owner, value.asked, value.trains, *(value.parameters or ())]
    return undo, [*parts, *attributes.values(), *items.values()]


def _tensor(value: Tensor) -> Saved:
    fields = [(name, getattr(value, name)) for name in _TENSOR_FIELDS]
    counters = _counters(value.memory, value.counter)

    def undo() -> None:
        for name, held in fields:
            setattr(value, name, held)
        counters()

    return undo, [value.base]


def _counters(memory: Memory, counter: Version) -> Undo:
    writes, counted, version = len(memory.writes), len(counter.writes), counter.value
    kept, held, saved = memory.kept, memory.held, memory.saved

    def undo() -> None:
        del memory.writes[writes:]
        del counter.writes[counted:]
        counter.value = version
        memory.kept, memory.held, memory.saved = kept, held, saved

    return undo


def _native(value: NativeV) -> Saved:
    """What the engine's own callable was made around."""
    held = inspect.getclosurevars(value.call).nonlocals if inspect.isfunction(value.call) else {}
    return _nothing, held.values()


def _iterator(value: IteratorV) -> Saved:
    frame = value.frame
    return _nothing, value.over if frame is None else [*value.over, frame.variables]


_SAVES: dict[type, Callable[..., Saved]] = {
    ArrayV: lambda value: (_nothing, [value.memory_of]),
    BuiltinMethod: lambda value: (_nothing, [value.receiver]),
    ClassV: _class,
    ContextV: _context,
    DictV: _dict,
    FunctionV: _function,
    Instance: _instance,
    IteratorV: _iterator,
    ListV: _list,
    Method: lambda value: (_nothing, [value.receiver, value.function]),
    NativeV: _native,
    PartialV: lambda value: (_nothing, [value.function, *value.args, *value.kwargs.values()]),
    SuperV: lambda value: (_nothing, [value.receiver]),
    Sym: _unknown,
    Tensor: _tensor,
    TupleV: _tuple,
    dict: _mapping,
}
