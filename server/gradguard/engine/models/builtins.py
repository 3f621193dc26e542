"""Python's builtins."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from typing import cast

from gradguard.engine.domain import classes, spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import key_of, known_truth
from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    MISSING,
    ClassV,
    DictV,
    External,
    Frame,
    Instance,
    IteratorV,
    ListV,
    Sym,
    TupleV,
    Value,
    contents,
    tensors_in,
)
from gradguard.engine.models import tensor_methods as tensors
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import counting, graphs, holders, reads
from gradguard.engine.observe.lending import lend
from gradguard.engine.python import attributes, operators
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.instances import instance_of
from gradguard.engine.python.iteration import MAX_RANGE, UNKNOWN_ITEMS, iterate
from gradguard.engine.python.special import call_special
from gradguard.engine.python.subscripts import dict_set
from gradguard.engine.state import bounds
from gradguard.engine.state.coerce import number
from gradguard.engine.state.run import Run

MODELS = Registry()


def held(value: Value) -> Value:
    """The tensor of an unknown value that has been used as one, else the value itself."""
    return value.tensor if isinstance(value, Sym) and value.tensor is not None else value


@MODELS.external_function("builtins.range")
def range_(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`range(...)`."""
    for value in call.args:
        number(value)
        tensor = held(value)
        if isinstance(tensor, Tensor):
            reads.host_read(run, frame, node, "index", tensor, implicit=True)
    bounds_given = [a for a in call.args[:3] if isinstance(a, int)]
    known = bounds_given and all(isinstance(a, int) for a in call.args)
    if known and not (len(call.args) == 3 and bounds_given[2] == 0):
        numbers = range(*bounds_given)
        # `len` takes none that has more items than a machine can have.
        length = len(numbers[: sys.maxsize])
        return IteratorV(_counted(run, numbers), exact=length <= MAX_RANGE, length=length)
    return IteratorV(_unknown_range(run, call), exact=False)


def _counted(run: Run, numbers: range) -> Iterator[Value]:
    if not numbers[_EXACT_RANGE:]:
        yield from numbers
        return
    yield from indices(run, numbers[0])


_EXACT_RANGE = 16


def indices(run: Run, first: Value) -> Iterator[Value]:
    """The first index as it is, later ones as unknown numbers that are not the first."""
    yield first
    for _ in range(MAX_RANGE):
        yield counting.later(run)


def _unknown_range(run: Run, call: Call) -> Iterator[Value]:
    first = call.args[0] if len(call.args) > 1 else 0
    source = indices(run, first)
    for _ in range(UNKNOWN_ITEMS):
        yield next(source)


@MODELS.external_function("builtins.enumerate")
def _enumerate(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "iterable"), node)
    start = call.get(1, "start", 0)
    numbers: Iterator[Value] = (
        iter(range(start, start + MAX_RANGE))
        if source.exact and (source.length or 0) <= _EXACT_RANGE and isinstance(start, int)
        else indices(run, start)
    )
    pairs = (TupleV((number, item)) for number, item in zip(numbers, source.source, strict=False))
    return IteratorV(
        pairs, source.exact, data=source.data, kind=source.kind, length=source.length, over=(source,)
    )


@MODELS.external_function("builtins.zip", "itertools.zip_longest")
def _zip(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    sources = [iterate(run, frame, value, node) for value in call.args]
    rows = (TupleV(row) for row in zip(*[s.source for s in sources], strict=False))
    kind = next((s.kind for s in sources if s.kind), "")
    lengths = [s.length for s in sources if s.length is not None]
    exact = all(s.exact for s in sources)
    return IteratorV(rows, exact, kind=kind, length=min(lengths, default=None), over=tuple(sources))


@MODELS.external_function("builtins.map")
def _map(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

    sources = [iterate(run, frame, value, node) for value in call.args[1:]]
    function = call.args[0] if call.args else None

    def results() -> Iterator[Value]:
        for row in zip(*[s.source for s in sources], strict=False):
            yield call_value(
                run, frame, function, Call(list(row), {}, call.place, [None] * len(row), {}), node
            )

    return IteratorV(results(), exact=all(s.exact for s in sources), over=(function, *sources))


@MODELS.external_function("builtins.reversed")
def _reversed(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "sequence"), node)
    items = drawn(run, source)
    return IteratorV(iter(items[::-1]), exact=source.exact, length=source.length, over=(source,))


def take(source: IteratorV) -> Iterator[Value]:
    """Items of an iterable, up to a bound."""
    for count, item in enumerate(source.source):
        if count >= MAX_RANGE:
            return
        yield item


def drawn(run: Run, source: IteratorV) -> list[Value]:
    """The same in a list, which holds the first items while later ones are made."""
    items: list[Value] = []
    mark = run.pend(items)
    items.extend(take(source))
    del run.pending[mark:]
    return items


@MODELS.external_function("builtins.sorted")
def _sorted(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = iterate(run, frame, call.get(0, "iterable"), node)
    items = drawn(run, source)
    tensors = [t for t in map(held, items) if isinstance(t, Tensor)]
    if tensors and "key" not in call.kwargs:
        reads.host_read(run, frame, node, "sorted", tensors[0], implicit=True)
    return ListV(in_order(run, frame, items, call, node), open=not source.exact, made=call.place)


def in_order(run: Run, frame: Frame, items: list[Value], call: Call, node: ast.AST) -> list[Value]:
    """The items as `sorted` and `list.sort` order them; as they are where a key is not known."""
    key = call.kwargs.get("key")
    keys = items
    if key is not None:
        keys = [call_value(run, frame, key, Call([item], {}, call.place, [None], {}), node) for item in items]
    numbers = all(isinstance(one, (int, float)) for one in keys)
    if not numbers and not all(isinstance(one, str) for one in keys):
        return items
    comparable = cast("list[str]", keys)
    order = sorted(
        range(len(items)),
        key=comparable.__getitem__,
        reverse=known_truth(call.kwargs.get("reverse", False)) is True,
    )
    return [items[index] for index in order]


@MODELS.external_function(
    "builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"
)
def _list(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    items: list[Value] = []
    is_open = False
    if call.args:
        source = iterate(run, frame, call.args[0], node)
        items = drawn(run, source)
        is_open = not source.exact
        if isinstance(call.args[0], ListV) and call.args[0].kind == "parameters":
            return ListV(items, open=is_open, made=call.place, kind="parameters")
    if name == "tuple":
        return TupleV(tuple(items), open=is_open)
    made = ListV(
        items,
        open=is_open,
        made=call.place,
        kind={"set": "set", "frozenset": "set", "deque": "deque"}.get(name, "list"),
    )
    made.maxlen = call.get(1, "maxlen") if name == "deque" else None
    return made


@MODELS.external_function("builtins.dict", "collections.OrderedDict", "collections.Counter")
def _dict(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

    made = DictV(made=call.place, open=call.open_args)
    if call.args:
        given = contents(call.args[0])
        if isinstance(given, DictV):
            run.work(len(given.items))
            made.items.update(given.items)
            made.open = given.open
        else:
            source = iterate(run, frame, call.args[0], node)
            for item in drawn(run, source):
                if isinstance(item, (TupleV, ListV)) and len(item.items) == 2:
                    dict_set(made, item.items[0], item.items[1])
            made.open = not source.exact
    for name, value in call.kwargs.items():
        dict_set(made, name, value)
    if call.name == "Counter" and not call.args:
        made.factory = External("builtins.int")
    return made


@MODELS.external_function("collections.defaultdict")
def _defaultdict(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return DictV(made=call.place, factory=call.get(0, "default_factory"))


@MODELS.external_function("builtins.len")
def _len(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    value = held(call.get(0, "obj"))
    if isinstance(value, (ListV, TupleV, DictV)) and not value.open:
        return len(value.items) if isinstance(value, TupleV) else counting.length(value)
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, Tensor):
        if value.shape and isinstance(value.shape[0], int):
            return value.shape[0]
        return Sym(("shape", value.number, 0), "int")
    if isinstance(value, Instance):
        own = call_special(run, frame, value, "__len__", [], node)
        if own is not MISSING:
            return own
        inner = contents(value)
        if isinstance(inner, (ListV, DictV)):
            return run.fresh("int") if inner.open else counting.length(inner)
    return Sym(Key("len", key_of(value)), "int")


@MODELS.external_function("builtins.sum")
def _sum(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Adds item by item; not a host read."""
    source = iterate(run, frame, call.get(0, "iterable"), node)
    total: Value = call.get(1, "start", 0)
    exact = source.exact
    for item in take(source):
        total = operators.binary(run, frame, ast.Add, total, item, node, (node, node))
    if not exact and isinstance(total, (int, float)):
        return run.fresh("number")
    return total


@MODELS.external_function("builtins.max", "builtins.min", "builtins.any", "builtins.all")
def _extreme(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    if len(call.args) > 1:
        items: list[Value] = list(call.args)
        exact = True
    else:
        source = iterate(run, frame, call.get(0, "iterable"), node)
        items = drawn(run, source)
        exact = source.exact
    tensors = [t for t in map(held, items) if isinstance(t, Tensor)]
    if tensors:
        if (len(items) > 1 or name in ("any", "all")) and "key" not in call.kwargs:
            reads.host_read(
                run, frame, node, name, tensors[0], implicit=True, mixed=len(tensors) < len(items)
            )
        return tensors[-1] if name in ("max", "min") else run.fresh("bool")
    if name in ("any", "all"):
        known = [known_truth(item) for item in items]
        if name == "any" and True in known:
            return True
        if exact and None not in known:
            return any(known) if name == "any" else all(known)
        return Sym(Key(name, *map(key_of, items)), "bool")
    numbers = [item for item in items if isinstance(item, (int, float))]
    if exact and items and len(numbers) == len(items):
        return max(numbers) if name == "max" else min(numbers)
    return Sym(Key(name, *map(key_of, items)), "number")


@MODELS.external_function(
    "builtins.float",
    "builtins.int",
    "builtins.bool",
    "builtins.complex",
    "builtins.round",
    "builtins.abs",
    "builtins.divmod",
    "operator.index",
)
def _number(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    value = held(call.get(0, "x", 0))
    if isinstance(value, Tensor):
        if name == "abs":
            return tensors.method(run, frame, value, "abs", Call([], {}, call.place, [], {}), node)
        if name != "round":
            reads.host_read(run, frame, node, name, value, implicit=True)
        made = Sym(
            (name, value.number, value.counter.value),
            "int" if name == "int" else "bool" if name == "bool" else "number",
            data=True,
        )
        made.cuts = graphs.cut_off(run, (value,), call.place, name, spelling.source_text(node))
        return made
    if isinstance(value, (int, float, str)) and len(call.args) == 1:
        convert = _CONVERT.get(name)
        return run.fresh("number") if convert is None else bounds.computed(run, convert, value, kind="number")
    if isinstance(value, Sym):
        made = Sym(
            Key(name, value.key),
            "bool" if name == "bool" else "int" if name == "int" else "number",
            data=True,
        )
        made.cuts = value.cuts
        return made
    return run.fresh("number")


_CONVERT: dict[str, Callable[..., Value]] = {
    "float": float,
    "int": int,
    "bool": bool,
    "round": round,
    "abs": abs,
}


@MODELS.external_function("builtins.print", "builtins.str", "builtins.repr", "builtins.format")
def _print(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    holders.shown(run, call.args)
    for value in call.args:
        for tensor in tensors_in(held(value)):
            reads.host_read(run, frame, node, "print" if name == "print" else "format", tensor, implicit=True)
    if name == "str" and len(call.args) == 1 and isinstance(call.args[0], (int, str, float)):
        return bounds.computed(run, str, call.args[0], kind="str")
    return None if name == "print" else run.fresh("str")


@MODELS.external_function("builtins.isinstance")
def _isinstance(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    value, cls = call.get(0, "obj"), call.get(1, "cls")
    known = instance_of(value, cls)
    return known if known is not None else Sym(Key("isinstance", key_of(value), key_of(cls)), "bool")


@MODELS.external_function("builtins.issubclass")
def _issubclass(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return run.fresh("bool")


@MODELS.external_function("builtins.hasattr")
def _hasattr(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    owner, name = call.get(0, "obj"), call.get(1, "name")
    if isinstance(owner, Instance) and isinstance(name, str):
        if name in owner.attributes or classes.class_lookup(owner.cls, name) is not None:
            return True
        if isinstance(owner.cls, ClassV) and not any(
            not isinstance(b, ClassV) for b in classes.linear(owner.cls)
        ):
            return False
    return Sym(Key("hasattr", key_of(owner), key_of(name)), "bool")


@MODELS.external_function("builtins.getattr")
def _getattr(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    owner, name = call.get(0, "obj"), call.get(1, "name")
    if not isinstance(name, str):
        # It may be any of them.
        lend(run, tensors_in(TupleV(tuple(owner.attributes.values()))) if isinstance(owner, Instance) else ())
        return run.fresh()
    if len(call.args) > 2 and isinstance(owner, Instance) and name not in owner.attributes:
        if classes.class_lookup(owner.cls, name) is None:
            return call.args[2]
    made = ast.copy_location(ast.Attribute(value=ast.Name("_", ast.Load()), attr=name, ctx=ast.Load()), node)
    return attributes.get(run, frame, owner, name, made)


@MODELS.external_function("builtins.setattr")
def _setattr(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name, owner = call.get(1, "name"), call.get(0, "obj")
    if isinstance(name, Sym) and isinstance(owner, Instance):
        # A name of its own, which no code can spell: `f"loss{step}"` is another one on every pass.
        name = f"[{key_of(name)!r}]"
    if isinstance(name, str):
        attributes.put(run, frame, owner, name, call.get(2, "value"), _as_written(node))
    return None


def _as_written(node: ast.AST) -> ast.AST:
    """`a.b` for `setattr(a, "b", value)`, and the value where no code can spell the attribute."""
    if not isinstance(node, ast.Call) or len(node.args) != 3:
        return node
    owner, name, value = node.args
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
        return ast.copy_location(ast.Attribute(value=owner, attr=name.value, ctx=ast.Store()), node)
    return value


@MODELS.external_function("builtins.iter")
def _iter(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return iterate(run, frame, call.get(0, "iterable"), node)


@MODELS.external_function("builtins.next")
def _next(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    value = call.get(0, "iterator")
    source = value if isinstance(value, IteratorV) else iterate(run, frame, value, node)
    return next(source.source, run.fresh(data=source.data))


@MODELS.external_function("builtins.type")
def _type(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    value = call.get(0, "obj")
    return value.cls if isinstance(value, Instance) else run.fresh()


@MODELS.external_function("builtins.id", "builtins.hash", "builtins.ord", "builtins.callable", "builtins.dir")
def _opaque(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    for tensor in tensors_in(call.get(0, "obj")) if call.name in ("id", "hash") else ():
        tensor.memory.held = True  # another tensor has another one
    return Sym(Key("id", *map(key_of, call.args)), "int")
