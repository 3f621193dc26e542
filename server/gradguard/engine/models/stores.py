"""What the standard library keeps values in besides lists and dictionaries: queues, heaps, chains, context variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping
from dataclasses import replace

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import (
    MISSING,
    DictV,
    Frame,
    Instance,
    ListV,
    NativeV,
    TorchName,
    Value,
    contents,
)
from gradguard.engine.models import containers
from gradguard.engine.models.builtins import drawn, in_order
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import lifetime
from gradguard.engine.python import subscripts
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.iteration import iterate
from gradguard.engine.state.run import Run

MODELS = Registry()

_QUEUES = ("Queue", "LifoQueue", "SimpleQueue", "PriorityQueue", "JoinableQueue")


@MODELS.external_function(
    *(
        f"{home}.{name}"
        for home in ("queue", "asyncio", "multiprocessing", "torch.multiprocessing")
        for name in _QUEUES
    )
)
def _queue(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    last = call.name == "LifoQueue"
    held = ListV(made=call.place, maxlen=None)
    # Whoever else has the queue puts into it and takes out of it, too.
    held.open = call.name == "JoinableQueue"
    return Instance(TorchName("queue.Queue"), {"held": held, "last": last}, made=call.place)


def _held(queue: Instance) -> ListV:
    held = queue.attributes["held"]
    assert isinstance(held, ListV)
    return held


def _put(run: Run, frame: Frame, queue: Instance, call: Call, node: ast.AST) -> Value:
    given = Call([call.get(0, "item")], {}, call.place, call.exprs[:1], {})
    containers.method(run, frame, _held(queue), "append", given, node)
    return None


def _get(run: Run, frame: Frame, queue: Instance, call: Call, node: ast.AST) -> Value:
    name = "pop" if queue.attributes["last"] else "popleft"
    return containers.method(run, frame, _held(queue), name, Call([], {}, call.place, [], {}), node)


def _empty(run: Run, frame: Frame, queue: Instance, call: Call, node: ast.AST) -> Value:
    held = _held(queue)
    known = not (held.open or queue.escaped or held.counted)
    return not held.items if known else run.fresh("bool")


def _size(run: Run, frame: Frame, queue: Instance, call: Call, node: ast.AST) -> Value:
    held = _held(queue)
    return len(held.items) if not (held.open or queue.escaped or held.counted) else run.fresh("int")


def _nothing(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return None


MODELS.methods_of("Queue", {
    "put": _put, "put_nowait": _put, "get": _get, "get_nowait": _get, "empty": _empty, "qsize": _size, "task_done": _nothing,
    "join": _nothing,
})  # fmt: skip


@MODELS.external_function("heapq.heappush", "bisect.insort", "bisect.insort_left", "bisect.insort_right")
def _pushed(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    heap = call.get(0, "heap")
    if isinstance(heap, ListV):
        given = Call([call.get(1, "item")], {}, call.place, call.exprs[1:2], {})
        containers.method(run, frame, heap, "append", given, node)
    return None


@MODELS.external_function("heapq.heappop", "heapq.heappushpop", "heapq.heapreplace")
def _popped(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Which item goes is not followed: the first stands for it."""
    heap = call.get(0, "heap")
    if not isinstance(heap, ListV):
        return run.fresh()
    if call.name != "heappop":
        _pushed(run, frame, call, node)
    return containers.method(run, frame, heap, "popleft", Call([], {}, call.place, [], {}), node)


@MODELS.external_function("heapq.heapify")
def _heapified(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return None


@MODELS.external_function("heapq.nlargest", "heapq.nsmallest", "heapq.merge")
def _chosen(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    given = call.args[0] if call.name == "merge" and call.args else call.get(1, "iterable")
    source = iterate(run, frame, given, node)
    items = drawn(run, source)
    return ListV(in_order(run, frame, items, call, node), open=True, made=call.place)


def fill(run: Run, frame: Frame, made: Instance, call: Call, node: ast.AST) -> None:
    """`super().__init__(...)` of a class of the program that is a dictionary or a list."""
    held = contents(made)
    if isinstance(held, DictV) and (call.args or call.kwargs):
        given = call.args[-1:] if classes.is_subclass(made.cls, "collections.defaultdict") else call.args
        containers.method(run, frame, held, "update", replace(call, args=list(given)), node)
    elif isinstance(held, ListV) and call.args:
        containers.method(run, frame, held, "extend", call, node)


def inherited(run: Run, frame: Frame, owner: Instance, name: str, call: Call, node: ast.AST) -> Value:
    """A method of such a class that a dictionary or a list has, called on what the object holds; MISSING for any other."""
    held = contents(owner)
    if not isinstance(held, (ListV, DictV)):
        return MISSING
    if name == "__init__":
        fill(run, frame, owner, call, node)
        return None
    at = ast.copy_location(ast.Subscript(_OWN, _OWN, ast.Load()), node)
    if name in ("__getitem__", "__missing__"):
        return subscripts.get(run, frame, held, call.get(0, "key"), at)
    if name == "__setitem__":
        subscripts.put(run, frame, held, call.get(0, "key"), call.get(1, "value"), at)
        return None
    if name == "__delitem__":
        subscripts.delete(run, frame, held, call.get(0, "key"), node)
        return None
    if name == "__iter__":
        return iterate(run, frame, held, node)
    return containers.method(run, frame, held, name, call, node)


_OWN = ast.Name("self", ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


class _Chained(MutableMapping[object, tuple[Value, Value]]):
    """Several dictionaries as one: the first that has a key answers, the first of all takes what is stored."""

    def __init__(self, tables: list[DictV]) -> None:
        self._tables = tables

    def __getitem__(self, key: object) -> tuple[Value, Value]:
        for table in self._tables:
            if key in table.items:
                return table.items[key]
        raise KeyError(key)

    def __setitem__(self, key: object, item: tuple[Value, Value]) -> None:
        self._tables[0].items[key] = item

    def __delitem__(self, key: object) -> None:
        del self._tables[0].items[key]

    def __iter__(self) -> Iterator[object]:
        return iter(dict.fromkeys(key for table in reversed(self._tables) for key in table.items))

    def __len__(self) -> int:
        return len(list(iter(self)))


@MODELS.external_function("collections.ChainMap")
def _chain_map(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    tables = [value for value in call.args if isinstance(value, DictV)] or [DictV(made=call.place)]
    is_open = len(tables) < len(call.args) or any(one.open for one in tables)
    return DictV(_Chained(tables), open=is_open or call.open_args, made=call.place)


@MODELS.external_function("contextvars.ContextVar")
def _context_variable(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    made = Instance(TorchName("contextvars.ContextVar"), made=call.place)
    if "default" in call.kwargs:
        made.attributes["value"] = call.kwargs["default"]
    return made


def _set(run: Run, frame: Frame, variable: Instance, call: Call, node: ast.AST) -> Value:
    given = Instance(TorchName("contextvars.Token"), made=call.place)
    old = variable.attributes.get("value")
    given.attributes["old_value"] = old
    variable.attributes["value"] = call.get(0, "value")
    if old is not None:
        lifetime.replaced(run, frame, old, call.get(0, "value"))
    return given


def _got(run: Run, frame: Frame, variable: Instance, call: Call, node: ast.AST) -> Value:
    held = variable.attributes.get("value")
    return held if held is not None else call.get(0, "default")


def _reset(run: Run, frame: Frame, variable: Instance, call: Call, node: ast.AST) -> Value:
    given = call.get(0, "token")
    if isinstance(given, Instance):
        variable.attributes["value"] = given.attributes.get("old_value")
    return None


MODELS.methods_of("ContextVar", {"set": _set, "get": _got, "reset": _reset})


@MODELS.external_function("typing.cast", "typing.assert_type", "types.MappingProxyType", "weakref.proxy")
def _itself(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """What was given, by another name."""
    return (
        call.args[1 if call.name == "cast" else 0] if len(call.args) > (call.name == "cast") else run.fresh()
    )


@MODELS.external_function("weakref.ref", "weakref.WeakMethod")
def _weak(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    value = call.get(0, "object")
    return NativeV(lambda run, frame, call, node: value, "ref", (value,))


_POOLS = (
    "concurrent.futures.ThreadPoolExecutor",
    "multiprocessing.pool.ThreadPool",
    "multiprocessing.dummy.Pool",
)


@MODELS.external_function(*_POOLS)
def _pool(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Threads share the memory of the program: what they do is done where it is asked for."""
    return Instance(TorchName("concurrent.futures.ThreadPoolExecutor"), made=call.place)


def _submit(run: Run, frame: Frame, pool: Instance, call: Call, node: ast.AST) -> Value:
    function, rest = (
        call.get(0, "fn"),
        Call(call.args[1:], call.kwargs, call.place, call.exprs[1:], call.kwexprs),
    )
    if call.name in ("apply", "apply_async"):
        given = call.get(1, "args")
        items = list(iterate(run, frame, given, node).source) if given is not None else []
        rest = Call(items, {}, call.place, [None] * len(items), {})
    # Grad mode is a thread's own: a new one records.
    saved, run.modes = (
        run.modes,
        type(run.modes)(True, False, run.modes.autocast, None, run.modes.saved_hooks),
    )
    try:
        made = call_value(run, frame, function, rest, node)
    finally:
        run.modes = saved
    if call.name == "apply":
        return made
    return Instance(TorchName("concurrent.futures.Future"), {"value": made}, made=call.place)


def _mapped(run: Run, frame: Frame, pool: Instance, call: Call, node: ast.AST) -> Value:
    saved, run.modes = (
        run.modes,
        type(run.modes)(True, False, run.modes.autocast, None, run.modes.saved_hooks),
    )
    name = "itertools.starmap" if call.name == "starmap" else "builtins.map"
    try:
        made = run.models.external(run, frame, name, call, node)
        return ListV(drawn(run, iterate(run, frame, made, node)), made=call.place)
    finally:
        run.modes = saved


def _result(run: Run, frame: Frame, future: Instance, call: Call, node: ast.AST) -> Value:
    return future.attributes["value"]


MODELS.methods_of("ThreadPoolExecutor", {
    "submit": _submit, "map": _mapped, "imap": _mapped, "starmap": _mapped, "apply": _submit, "apply_async": _submit,
    "shutdown": _nothing, "close": _nothing, "join": _nothing,
})  # fmt: skip
MODELS.methods_of("Future", {"result": _result, "get": _result, "wait": _nothing})
