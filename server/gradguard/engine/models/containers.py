"""Methods of lists, tuples, dictionaries and sets."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import islice

from gradguard.engine.autograd import machine
from gradguard.engine.domain import spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import key_of
from gradguard.engine.domain.keys import Itself
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import (
    DictV,
    Frame,
    ListV,
    Sym,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models.builtins import in_order
from gradguard.engine.observe import counting, lifetime, piles
from gradguard.engine.observe.lending import lend
from gradguard.engine.python.iteration import iterate
from gradguard.engine.python.subscripts import dict_set, last_of
from gradguard.engine.state import bounds
from gradguard.engine.state.run import Run

_TELLS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
"""Methods that change nothing."""


def method(
    run: Run, frame: Frame, receiver: ListV | TupleV | DictV, name: str, call: Call, node: ast.AST
) -> Value:
    """Call a container's method."""
    if name not in _QUICK:
        run.work(len(receiver.items) // bounds.ITEMS_A_UNIT)
    handler = (_DICT if isinstance(receiver, DictV) else _LIST).get(name)
    if name not in _TELLS:
        run.trail.changed.append("[]")
    if handler is None:
        lend(run, (receiver, *call.args, *call.kwargs.values()))
        return run.fresh()
    return handler(run, frame, receiver, call, node)


def has(container: Value, name: str) -> bool:
    """Whether a container has a method of that name."""
    return name in (_DICT if isinstance(container, DictV) else _LIST)


def _remember(run: Run, frame: Frame, value: Value, node: ast.AST, *, inside: bool = False) -> None:
    tensors = lifetime.bound_in(value)
    if not tensors:
        return
    place, name = run.place(frame, run.statement or node), spelling.source_text(node)
    for tensor in tensors:
        machine.stored(run, tensor, place, name, inside=inside or type(value) not in (Tensor, Sym))


def _append(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    value = call.get(0, "object")
    _remember(run, frame, value, node)
    piles.note(run, frame, owner, value, node)
    owner.items.append(value)
    counting.grown(run, owner)
    if isinstance(owner.maxlen, int) and len(owner.items) > owner.maxlen:
        del owner.items[0]
    return None


def _appendleft(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    _remember(run, frame, call.get(0, "object"), node)
    owner.items.insert(0, call.get(0, "object"))
    counting.grown(run, owner)
    return None


def _extend(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:

    source = iterate(run, frame, call.get(0, "iterable"), node)
    for item in islice(source.source, bounds.MAX_ITEMS + 1):
        _remember(run, frame, item, node, inside=True)
        owner.items.append(item)
    owner.open = bounds.cut(run, owner.items) or owner.open or not source.exact
    counting.grown(run, owner)
    return None


def _insert(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    index, value = call.get(0, "index"), call.get(1, "object")
    _remember(run, frame, value, node)
    last = len(owner.items)
    owner.items.insert(max(min(index, last), -last) if isinstance(index, int) else last, value)
    counting.grown(run, owner)
    return None


def _pop(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    index = call.get(0, "index", -1)
    if owner.items:
        at = index if isinstance(index, int) and -len(owner.items) <= index < len(owner.items) else -1
        lifetime.release(run, tensors_in(owner.items[at]))
        return owner.items.pop(at)
    return run.fresh()


def _popleft(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:

    if owner.items:
        lifetime.release(run, tensors_in(owner.items[0]))
    return owner.items.pop(0) if owner.items else run.fresh()


def _clear(run: Run, frame: Frame, owner: ListV | DictV, call: Call, node: ast.AST) -> Value:

    run.weigh((owner,))
    lifetime.release(run, tensors_in(owner))
    owner.items.clear()
    owner.open = owner.counted = False
    return None


def _remove(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    wanted = call.get(0, "value")
    for index, item in enumerate(owner.items):
        if item is wanted or (not isinstance(item, (Tensor, Sym)) and key_of(item) == key_of(wanted)):
            del owner.items[index]
            break
    return None


def _reverse(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    owner.items.reverse()
    return None


def _copy(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    return ListV(list(owner.items), open=owner.open, made=call.place, kind=owner.kind)


def _sort(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:

    owner.items[:] = in_order(run, frame, list(owner.items), call, node)
    return None


def _index(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    return run.fresh("int")


def _add(run: Run, frame: Frame, owner: ListV, call: Call, node: ast.AST) -> Value:
    value = call.get(0, "element")
    if not any(item is value or (isinstance(item, (str, int)) and item == value) for item in owner.items):
        _remember(run, frame, value, node)
        owner.items.append(value)
        counting.grown(run, owner)
    return None


def _replace(run: Run, frame: Frame, owner: ListV | TupleV, call: Call, node: ast.AST) -> Value:
    """`named._replace(h=h)`: a named tuple with other values in some fields."""
    if not isinstance(owner, TupleV):
        return run.fresh()
    items = (call.kwargs.get(name, item) for name, item in zip(owner.names, owner.items, strict=False))
    return TupleV(tuple(items), owner.names)


def _as_dict(run: Run, frame: Frame, owner: ListV | TupleV, call: Call, node: ast.AST) -> Value:
    if not isinstance(owner, TupleV):
        return run.fresh()
    pairs = zip(owner.names, owner.items, strict=False)
    return DictV({token(name): (name, item) for name, item in pairs}, made=call.place)


def _nothing(run: Run, frame: Frame, owner: Value, call: Call, node: ast.AST) -> Value:
    return None


_LIST: dict[str, Callable[..., Value]] = {
    "append": _append, "appendleft": _appendleft, "extend": _extend, "insert": _insert, "pop": _pop, "popleft": _popleft,
    "clear": _clear, "remove": _remove, "discard": _remove, "reverse": _reverse, "copy": _copy, "index": _index, "count": _index,
    "sort": _sort, "add": _add, "update": _extend, "__len__": _index, "rotate": _nothing, "_replace": _replace, "_asdict": _as_dict,
}  # fmt: skip


def _get(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    key = call.get(0, "key")
    held = owner.items.get(token(key))
    if held is not None:
        return held[1]
    if owner.open or isinstance(key, Sym):
        default = call.get(1, "default")
        known = run.oracle.decide(("has", Itself(owner), token(key)), False, weak=True, at=node)
        if known and owner.items:
            return last_of(run, owner)
        return run.fresh() if known else default
    return call.get(1, "default")


def _items(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    run.work(2 * len(owner.items))
    pairs: list[Value] = [TupleV(pair) for pair in owner.items.values()]
    return ListV(pairs, open=owner.open, kind=_walked(owner))


def _keys(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    return ListV([key for key, _ in owner.items.values()], open=owner.open, kind=_walked(owner))


def _values(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    return ListV([value for _, value in owner.items.values()], open=owner.open, kind=_walked(owner))


def _walked(owner: DictV) -> str:
    """A loop over a module's parameters is none over steps."""
    return "parameters" if owner.kind in ("parameters", "buffers") else "list"


def _dict_pop(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    held = owner.items.pop(token(call.get(0, "key")), None)
    if held is not None:
        return held[1]
    return call.args[1] if len(call.args) > 1 and not owner.open else run.fresh()


def _update(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    source = call.get(0, "other")
    if isinstance(source, DictV):
        for key, value in list(source.items.values()):
            _remember(run, frame, value, node)
            dict_set(owner, key, value)
        owner.open = bounds.cut_table(run, owner.items) or owner.open or source.open
    elif source is not None:
        pairs = iterate(run, frame, source, node)
        for item in islice(pairs.source, bounds.MAX_ITEMS + 1):
            if isinstance(item, (TupleV, ListV)) and len(item.items) == 2:
                _remember(run, frame, item.items[1], node)
                dict_set(owner, item.items[0], item.items[1])
            else:
                owner.open = True
        owner.open = bounds.cut_table(run, owner.items) or owner.open or not pairs.exact
    for name, value in call.kwargs.items():
        _remember(run, frame, value, node)
        dict_set(owner, name, value)
    return None


def _popitem(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    if not owner.items:
        return run.fresh()
    at = 0 if call.get(0, "last", True) is False else -1
    return TupleV(owner.items.pop(list(owner.items)[at]))


def _setdefault(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    key = call.get(0, "key")
    held = owner.items.get(token(key))
    if held is not None:
        return held[1]
    _remember(run, frame, call.get(1, "default"), node)
    dict_set(owner, key, call.get(1, "default"))
    return call.get(1, "default")


def _dict_copy(run: Run, frame: Frame, owner: DictV, call: Call, node: ast.AST) -> Value:
    run.work(len(owner.items))
    return DictV(dict(owner.items), open=owner.open, made=call.place, factory=owner.factory, kind=owner.kind)


_QUICK = frozenset({"append", "appendleft", "insert", "pop", "extend", "update", "get", "setdefault"})
"""Methods that do not go through all that is held, or count that themselves."""


_DICT: dict[str, Callable[..., Value]] = {
    "get": _get, "items": _items, "keys": _keys, "values": _values, "pop": _dict_pop, "update": _update, "setdefault": _setdefault,
    "popitem": _popitem, "clear": _clear, "copy": _dict_copy, "__len__": _index, "append": _nothing,
}  # fmt: skip
