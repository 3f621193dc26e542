"""Putting shared definitions back as they were.

The top level of a file runs once for all entries that are functions. What one entry does to a global (a list it
appends to, a counter it bumps, an unknown value it found to be a tensor) must not be seen by the next, or the
answer for one function would depend on which others were run before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradguard.tape.domain import Memory, Tensor, Version
from gradguard.tape.frame import Frame, Namespace
from gradguard.tape.values import (
    ClassV,
    ContextV,
    DictV,
    FunctionV,
    Instance,
    ListV,
    Method,
    PartialV,
    Sym,
    TupleV,
    Value,
)

_TENSOR_FIELDS = tuple(name for name in Tensor.__slots__ if name not in ("memory", "counter"))


class Snapshot:
    """Remembers everything mutable that the given scopes reach."""

    def __init__(self, frames: Iterable[Frame], namespaces: Iterable[Namespace]) -> None:
        self._restore: list[Callable[[], None]] = []
        self._functions: list[tuple[FunctionV, tuple[str, ...], bool]] = []
        self._seen: set[int] = set()
        for frame in frames:
            self._mapping(frame.variables)
        self.add(namespaces)

    def add(self, namespaces: Iterable[Namespace]) -> None:
        """Remember these as they are now, too."""
        for namespace in namespaces:
            self._mapping(namespace.variables)

    def keep(self, value: Value) -> None:
        """Remember one value as it is now, too."""
        self._value(value)

    def restore(self, *, functions: bool) -> None:
        """Put everything back; functions only where one was seen to change, which is rare."""
        for undo in self._restore:
            undo()
        if functions:
            for function, modes, compiled in self._functions:
                function.modes, function.compiled = modes, compiled

    def _mapping(self, held: dict[str, Value]) -> None:
        if id(held) in self._seen:
            return
        self._seen.add(id(held))
        copy = dict(held)

        def undo() -> None:
            # Cheaper than to ask whether they differ, and the order is as it was.
            held.clear()
            held.update(copy)

        self._restore.append(undo)
        for value in copy.values():
            self._value(value)

    def _value(self, value: Value) -> None:
        if not isinstance(value, _MUTABLE) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, ListV):
            self._list(value)
        elif isinstance(value, TupleV):
            for item in value.items:
                self._value(item)
        elif isinstance(value, DictV):
            self._dict(value)
        elif isinstance(value, Instance):
            self._instance(value)
        elif isinstance(value, ClassV):
            self._mapping(value.attributes)
            for base in value.bases:
                self._value(base)
        elif isinstance(value, FunctionV):
            self._function(value)
        elif isinstance(value, Sym):
            self._unknown(value)
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, Method):
            self._value(value.receiver)
        elif isinstance(value, ContextV):
            self._context(value)
        elif isinstance(value, PartialV):
            for item in (*value.args, *value.kwargs.values()):
                self._value(item)

    def _list(self, value: ListV) -> None:
        items, is_open, counted, escaped = list(value.items), value.open, value.counted, value.escaped

        def undo() -> None:
            value.items[:] = items
            value.open, value.counted, value.escaped = is_open, counted, escaped

        self._restore.append(undo)
        for item in items:
            self._value(item)

    def _dict(self, value: DictV) -> None:
        items, is_open, counted, escaped = dict(value.items), value.open, value.counted, value.escaped

        def undo() -> None:
            value.items.clear()
            value.items.update(items)
            value.open, value.counted, value.escaped = is_open, counted, escaped

        self._restore.append(undo)
        for _, item in items.values():
            self._value(item)

    def _instance(self, value: Instance) -> None:
        training, hooks, compiled = value.training, list(value.hooks), value.compiled
        escaped = value.escaped
        stored = set(value.stored)

        def undo() -> None:
            value.training, value.compiled, value.escaped = training, compiled, escaped
            value.hooks[:] = hooks
            value.stored = stored

        self._restore.append(undo)
        self._mapping(value.attributes)

    def _context(self, value: ContextV) -> None:
        saved, place = value.saved, value.place

        def undo() -> None:
            value.saved, value.place = saved, place

        self._restore.append(undo)

    def _function(self, value: FunctionV) -> None:
        self._functions.append((value, value.modes, value.compiled))
        if value.attributes:
            self._mapping(value.attributes)
        for default in value.defaults.values():
            self._value(default)
        if value.scope is not None:
            self._mapping(value.scope.variables)

    def _unknown(self, value: Sym) -> None:
        tensor, kind, text, facts = value.tensor, value.kind, value.text, dict(value.facts)

        def undo() -> None:
            value.tensor, value.kind, value.text = tensor, kind, text
            if value.facts != facts:
                value.facts.clear()
                value.facts.update(facts)

        self._restore.append(undo)
        if tensor is not None:
            self._value(tensor)
        for fact in facts.values():
            self._value(fact)

    def _tensor(self, value: Tensor) -> None:
        fields = [(name, getattr(value, name)) for name in _TENSOR_FIELDS]

        def undo() -> None:
            for name, held in fields:
                setattr(value, name, held)

        self._restore.append(undo)
        self._counters(value.memory, value.counter)
        if value.base is not None:
            self._value(value.base)

    def _counters(self, memory: Memory, counter: Version) -> None:
        writes, counted, version = len(memory.writes), len(counter.writes), counter.value
        kept, held = memory.kept, memory.held

        def undo() -> None:
            del memory.writes[writes:]
            del counter.writes[counted:]
            counter.value = version
            memory.kept, memory.held = kept, held

        self._restore.append(undo)


_MUTABLE = (ListV, TupleV, DictV, Instance, ClassV, FunctionV, Sym, Tensor, Method, PartialV, ContextV)
