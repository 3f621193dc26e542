"""Iterating and unpacking abstract values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradguard.engine.autograd import machine
from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.keys import HOST, LOADER, Key
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    ClassV,
    DictV,
    Frame,
    Instance,
    IteratorV,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.python import enumerations
from gradguard.engine.state.coerce import on_host
from gradguard.engine.state.run import Run

UNKNOWN_ITEMS = 2
"""How many items an iterable of unknown length is taken to have: two show what is carried from one to the next."""
MAX_RANGE = 64


def iterate(run: Run, frame: Frame, value: Value, node: ast.AST) -> IteratorV:
    """The items of a value, one at a time."""
    if isinstance(value, IteratorV):
        return value
    if isinstance(value, Sym) and value.tensor is not None:
        value = value.tensor
    if isinstance(value, TupleV):
        return IteratorV(
            iter(value.items or _unseen(run, value)),
            exact=not value.open,
            length=None if value.open else len(value.items),
            over=(value,),
        )
    if isinstance(value, ListV):
        kind = "parameters" if value.kind == "parameters" else ""
        return IteratorV(
            _live(run, value),
            exact=not value.open,
            kind=kind,
            length=None if value.open else len(value.items),
            over=(value,),
        )
    if isinstance(value, DictV):
        keys = iter([key for key, _ in value.items.values()] or _unseen(run, value))
        kind = "parameters" if value.kind in ("parameters", "buffers") else ""
        return IteratorV(keys, exact=not value.open, kind=kind, over=(value,))
    if isinstance(value, str):
        return IteratorV(iter(value[:MAX_RANGE]), exact=len(value) <= MAX_RANGE)
    if isinstance(value, Tensor):
        return _tensor(run, frame, value, node)
    if isinstance(value, ArrayV):
        return IteratorV(iter([run.fresh("number") for _ in range(UNKNOWN_ITEMS)]), exact=False)
    if isinstance(value, Instance):
        return _instance(run, frame, value, node)
    if isinstance(value, ClassV) and enumerations.is_enumeration(value):
        known = enumerations.members(value)
        return IteratorV(iter(known), length=len(known))
    items = [_item(run, value, index) for index in range(UNKNOWN_ITEMS)]
    return IteratorV(iter(items), exact=False, data=True, kind="data")


def _item(run: Run, value: Value, index: int) -> Sym:
    # A value of an unknown iterable: a batch, unless its source is a caller's container of tensors.
    made = run.fresh(data=True)
    if on_host(value):
        made.key = Key(HOST, made.key)
    if isinstance(value, Sym) and value.kind in ("int", "number"):
        made.kind = "int"
    return made


def _unseen(run: Run, value: TupleV | ListV | DictV) -> list[Value]:
    """Items of a container that may hold some and of which none is known: unknown ones, for it is not empty."""
    return [run.fresh() for _ in range(UNKNOWN_ITEMS)] if value.open else []


def _live(run: Run, value: ListV) -> Iterator[Value]:
    if not value.items:
        yield from _unseen(run, value)
    index = 0
    while index < len(value.items) and index < MAX_RANGE:
        yield value.items[index]
        index += 1


def _tensor(run: Run, frame: Frame, value: Tensor, node: ast.AST) -> IteratorV:
    """Iterating a tensor is `unbind(0)`: several views made by one call."""
    call = Call([value], {}, run.place(frame, node), [node], {})
    made = torchcalls.call_op(run, frame, "Tensor.unbind", call, node)
    if isinstance(made, TupleV):
        return IteratorV(
            iter(made.items),
            exact=not made.open,
            kind="tensor",
            length=None if made.open else len(made.items),
            over=(value,),
        )
    views = [
        machine.make_view(run, value, "unbind", run.place(frame, node), multi=True)
        for _ in range(UNKNOWN_ITEMS)
    ]
    return IteratorV(iter(views), exact=False, kind="tensor", over=(value,))


def _instance(run: Run, frame: Frame, value: Instance, node: ast.AST) -> IteratorV:

    method = classes.class_lookup(value.cls, "__iter__")
    if method is not None:
        bound = classes.bind(value, method)
        made = run.python.call(run, frame, bound, Call([], {}, run.place(frame, node), [], {}), node)
        if made is not value:
            return iterate(run, frame, made, node)
        following = classes.class_lookup(value.cls, "__next__")
        if following is not None:
            step = classes.bind(value, following)
            items = (
                run.python.call(run, frame, step, Call([], {}, run.place(frame, node), [], {}), node)
                for _ in range(UNKNOWN_ITEMS)
            )
            return IteratorV(items, exact=False)
    children = value.attributes.get("__children__")
    if isinstance(children, ListV):
        # Of a long list of modules of one class the first passes show what all do; of others each may differ.
        known = not children.open and _alike(children)
        length = len(children.items) if known else None
        return IteratorV(_live(run, children), exact=not children.open, length=length)
    if isinstance(children, DictV):
        return IteratorV(
            iter([key for key, _ in children.items.values()] or _unseen(run, children)),
            exact=not children.open,
        )
    getter = classes.class_lookup(value.cls, "__getitem__")
    if getter is not None:
        bound = classes.bind(value, getter)
        items = (
            run.python.call(run, frame, bound, Call([index], {}, run.place(frame, node), [None], {}), node)
            for index in range(UNKNOWN_ITEMS)
        )
        return IteratorV(items, exact=False)
    return _loader(run, frame, value, node)


def _alike(children: ListV) -> bool:
    """Whether all children are modules of one class."""
    classes = [one.cls if isinstance(one, Instance) else None for one in children.items]
    return bool(classes) and classes[0] is not None and all(one == classes[0] for one in classes)


def _loader(run: Run, frame: Frame, value: Instance, node: ast.AST) -> IteratorV:
    """A `DataLoader` over a `TensorDataset` gives tuples of tensors; over anything else, unknown batches."""
    dataset = value.attributes.get("dataset")
    path = value.cls.path if isinstance(value.cls, TorchName) else ""
    if path.endswith("DataLoader"):
        shape = dataset.attributes.get("tensors") if isinstance(dataset, Instance) else None
        if isinstance(shape, TupleV):
            return IteratorV(
                (_batch(run, frame, value, shape, node) for _ in range(UNKNOWN_ITEMS)),
                exact=False,
                data=True,
                kind="data",
            )
    items = [run.fresh(data=True) for _ in range(UNKNOWN_ITEMS)]
    for item in items if path.endswith("DataLoader") else ():
        item.key = Key(LOADER, item.key, _unpinned(value))
    return IteratorV(iter(items), exact=False, data=True, kind="data")


def _unpinned(loader: Instance) -> Place | None:
    """Where a loader was made whose batches lie in memory that is not pinned."""
    return loader.made if loader.attributes.get("pin_memory") is False else None


def _batch(run: Run, frame: Frame, loader: Instance, like: TupleV, node: ast.AST) -> ListV:
    items: list[Value] = []
    for tensor in like.items:
        made = run.tensor(run.place(frame, node))
        made.source = "data"
        made.device = "cpu"
        made.pageable = _unpinned(loader)
        if isinstance(tensor, Tensor):
            made.dtype = tensor.dtype
        items.append(made)
    return ListV(items)


def tensors_of(value: Value) -> list[Tensor]:
    """Tensors inside a value (a convenience for callers of this layer)."""
    return tensors_in(value)
