"""Reading and writing `owner[index]`."""

from __future__ import annotations

import ast
from itertools import islice

from gradguard.engine.autograd import layout, machine
from gradguard.engine.autograd.overlap import Operands
from gradguard.engine.autograd.sizes import known
from gradguard.engine.dispatch import graphless, torchcalls
from gradguard.engine.domain import classes, modules, spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.keys import Key, root
from gradguard.engine.domain.modules import is_module
from gradguard.engine.domain.strides import Shape
from gradguard.engine.domain.tensors import Place, Tensor, Tri, both
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    DictV,
    Frame,
    Instance,
    ListV,
    SliceV,
    Sym,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.observe import counting, holders, lifetime, reads
from gradguard.engine.python import attributes
from gradguard.engine.python.iteration import iterate
from gradguard.engine.python.special import call_special
from gradguard.engine.state import bounds
from gradguard.engine.state.coerce import are_sizes, as_tensor
from gradguard.engine.state.run import Run
from gradguard.engine.state.trail import unknown


def dict_set(target: DictV, key: Value, value: Value) -> None:
    """Store one item; an unknown key leaves room for others."""
    if isinstance(key, Sym):
        target.open = True
    target.items[token(key)] = (key, value)


def get(run: Run, frame: Frame, owner: Value, index: Value, node: ast.Subscript) -> Value:
    """`owner[index]` as a value."""
    if isinstance(owner, Sym) and owner.tensor is not None:
        owner = owner.tensor
    if isinstance(owner, Tensor):
        return tensor_get(run, frame, owner, index, node)
    if isinstance(index, Tensor) and isinstance(owner, (ListV, TupleV)):
        reads.host_read(run, frame, node, "index", index, implicit=True)
    if isinstance(owner, (ListV, TupleV)):
        return _sequence_get(run, owner, index)
    if isinstance(owner, DictV):
        return _dict_get(run, frame, owner, index, node)
    if isinstance(owner, Instance):
        return _instance_get(run, frame, owner, index, node)
    if isinstance(owner, ArrayV):
        return ArrayV(owner.memory_of, owner.dtype, owner.cuts)
    if isinstance(owner, str) and isinstance(index, int):
        return owner[index] if -len(owner) <= index < len(owner) else run.fresh("str")
    if isinstance(owner, Sym):
        key = f"[{token(index)!r}]"
        if key not in owner.items:
            size = are_sizes(owner) and not isinstance(index, SliceV)
            item = Sym(
                Key(owner.key, "item", token(index)),
                "int" if size else "any",
                data=owner.data,
                text=spelling.source_text(node),
            )
            owner.items[key] = graphless.mark(item, graphless.known(owner))
        return owner.items[key]
    return attributes.class_item(run, owner, index)


def _sequence_get(run: Run, owner: ListV | TupleV, index: Value) -> Value:
    items = owner.items
    if isinstance(index, bool):
        index = int(index)
    if isinstance(index, int):
        if -len(items) <= index < len(items):
            return items[index]
        return items[-1] if items and owner.open else run.fresh()
    if isinstance(index, SliceV):
        known = index.known
        if known is not None and known.step != 0:
            chosen = items[known]
            run.work(len(chosen) // bounds.ITEMS_A_UNIT)
            if isinstance(owner, TupleV):
                return TupleV(tuple(chosen), open=owner.open)
            return ListV(list(chosen), open=owner.open, trimmed=bool(run.loops) and _bounded(index))
        run.work(len(items) // bounds.ITEMS_A_UNIT)
        return ListV(list(items), open=True) if isinstance(owner, ListV) else TupleV(tuple(items), open=True)
    kinds = {one.cls if isinstance(one, Instance) else None for one in items}
    if len(kinds) > 1:
        # Of several kinds of objects none stands for the others.
        return run.fresh(
            "module" if all(isinstance(one, Instance) and is_module(one) for one in items) else "any"
        )
    if items:
        # An unknown index may hit any item; the last one stands for all.
        return items[-1]
    return run.fresh()


def _bounded(part: SliceV) -> bool:
    """`[-3:]` and `[:3]` give no more than so many items."""
    lower, upper = part.lower, part.upper
    return (isinstance(lower, int) and lower < 0 and upper is None) or (
        lower in (None, 0) and isinstance(upper, int) and upper >= 0
    )


def _dict_get(run: Run, frame: Frame, owner: DictV, index: Value, node: ast.AST) -> Value:
    held = owner.items.get(token(index))
    if held is not None:
        return held[1]
    if owner.factory is not None:
        made = _from_factory(run, frame, owner, node)
        owner.items[token(index)] = (index, made)
        return made
    if owner.items and (owner.open or isinstance(index, Sym)):
        return last_of(run, owner)
    made = run.fresh()
    if owner.open:
        owner.items[token(index)] = (index, made)
    return made


def last_of(run: Run, owner: DictV) -> Value:
    """The value that was put into a dictionary last."""
    run.work(len(owner.items) // bounds.ITEMS_A_UNIT)
    return list(owner.items.values())[-1][1]


def _from_factory(run: Run, frame: Frame, owner: DictV, node: ast.AST) -> Value:
    kind = getattr(owner.factory, "path", "")
    if kind == "builtins.list":
        return ListV(made=owner.made)
    if kind == "builtins.dict":
        return DictV(made=owner.made)
    if kind in ("builtins.int", "builtins.float"):
        return 0
    if kind.endswith("state"):
        return DictV(open=False)

    return run.python.call(run, frame, owner.factory, Call([], {}, run.place(frame, node), [], {}), node)


def _instance_get(run: Run, frame: Frame, owner: Instance, index: Value, node: ast.Subscript) -> Value:
    own = call_special(run, frame, owner, "__getitem__", [index], node)
    if own is not MISSING:
        return own
    children = owner.attributes.get("__children__")
    if isinstance(children, (ListV, DictV)) and classes.holds(owner.cls):
        return get(run, frame, children, index, node)
    if isinstance(children, ListV):
        if isinstance(index, SliceV):
            return Instance(
                owner.cls, {"__children__": _sequence_get(run, children, index)}, training=owner.training
            )
        return _sequence_get(run, children, index)
    if isinstance(children, DictV):
        return _dict_get(run, frame, children, index, node)
    return run.fresh()


def tensor_get(run: Run, frame: Frame, owner: Tensor, index: Value, node: ast.Subscript) -> Value:
    """Indexing: integers, slices, None and Ellipsis make a view; a tensor or list as index copies."""
    parts = index.items if isinstance(index, TupleV) else (index,)
    run.weigh((index,))
    place = run.place(frame, node)
    view: bool | None = True
    for part in parts:
        if isinstance(part, Sym) and part.kind == "any" and part.tensor is None:
            view = None if view else view
        elif _advanced(part):
            view = False
    if view is not False:
        # An unknown index is an integer far more often than a mask.
        made = machine.make_view(
            run, owner, "select" if len(parts) == 1 else "slice", place, sure=view is True
        )
        _lay_out(made, owner, parts)
        for part in parts:
            if isinstance(part, Tensor):
                reads.host_read(run, frame, node, "index", part, implicit=True)
        return made
    for part in parts:
        if isinstance(part, Sym) and part.kind == "tensor":
            as_tensor(run, part)
    mask = any(_is_mask(part) for part in parts)
    if mask:
        reads.host_read(run, frame, node, "mask", owner, implicit=True)
    call = Call(
        [owner, TupleV(tuple(_as_index(part) for part in parts))], {}, place, [node.value, node.slice], {}
    )
    result = torchcalls.call_op(run, frame, "Tensor.__getitem__", call, node, name="index")
    if not isinstance(result, Tensor) or result.base is not None:
        indices = [t for part in parts for t in tensors_in(part)]
        result = torchcalls.index_copy_out(run, owner, indices, place, node)
    if len(parts) == 1 and not mask:
        picked, sizes = _picked(parts[0]), known(owner)
        if picked is not None and sizes:
            layout.rows(result, picked, owner, sizes)
    return result


def _picked(part: Value) -> Shape | None:
    """Sizes of an index that picks rows."""
    if isinstance(part, ListV):
        plain = not part.open and all(
            isinstance(item, int) and not isinstance(item, bool) for item in part.items
        )
        return (len(part.items),) if plain else None
    return known(_as_index(part))


def _as_index(part: Value) -> Value:
    return part.tensor if isinstance(part, Sym) and part.tensor is not None else part


def _advanced(part: Value) -> bool:
    if isinstance(part, Tensor):
        # A 0-dim integer tensor selects, but through the same index op when its rank is unknown.
        return not (part.shape == () and part.dtype not in (None, "bool"))
    if isinstance(part, Sym):
        return part.tensor is not None or part.kind == "tensor"
    return isinstance(part, (ListV, ArrayV, bool))


def _is_mask(part: Value) -> bool:
    if isinstance(part, Sym):
        part = part.tensor
    return isinstance(part, Tensor) and part.dtype in ("bool", "uint8")


def _lay_out(made: Tensor, owner: Tensor, parts: tuple[Value, ...]) -> None:
    """Sizes and strides after indexing with integers, slices, None and Ellipsis."""
    sizes, steps = known(owner), owner.strides
    made.offset = None
    laid = _indexed(sizes, steps, parts) if sizes is not None and steps is not None else None
    if laid is not None:
        *grid, shift = laid
        layout.lay_out(made, *grid)
        made.offset = layout.behind(owner.offset, shift)
        return
    made.contiguous = True if owner.contiguous is True and _leading(parts) else None
    if owner.expanded is not False:
        made.expanded = None


def _indexed(sizes: Shape, steps: Shape, parts: tuple[Value, ...]) -> tuple[Shape, Shape, int | None] | None:
    """Sizes and strides, and how many elements behind the first one what is picked begins."""
    used = sum(part is not None and part is not Ellipsis for part in parts)
    filled: list[Value] = []
    for part in parts:
        if part is Ellipsis:
            filled.extend([SliceV()] * (len(sizes) - used))
        else:
            filled.append(part)
    new_sizes: list[int] = []
    new_steps: list[int] = []
    shift: int | None = 0
    at = 0
    for part in filled:
        if part is None:
            new_sizes.append(1)
            new_steps.append(steps[at] * sizes[at] if at < len(sizes) else 1)
            continue
        if at >= len(sizes):
            return None
        if isinstance(part, SliceV):
            size = _slice_size(sizes[at], part)
            if size is None:
                return None
            new_sizes.append(size)
            new_steps.append(steps[at] * (part.step if isinstance(part.step, int) else 1))
        begin = _begin(sizes[at], part)
        shift = None if shift is None or begin is None else shift + begin * steps[at]
        at += 1
    return (*new_sizes, *sizes[at:]), (*new_steps, *steps[at:]), shift


def _begin(size: int, part: Value) -> int | None:
    """First index that an integer or a slice picks of so many."""
    if isinstance(part, SliceV):
        return part.known.indices(size)[0] if part.known is not None else None
    return part % size if isinstance(part, int) and not isinstance(part, bool) and size else None


def _slice_size(size: int, part: SliceV) -> int | None:
    known = part.known
    if (
        known is None
        or known.step == 0
        or any(isinstance(one, bool) for one in (part.lower, part.upper, part.step))
    ):
        return None
    return len(range(*known.indices(size)))


def _leading(parts: tuple[Value, ...]) -> bool:
    """Integers, then at most one plain slice: what remains of a contiguous tensor is contiguous."""
    return all(isinstance(part, (int, Sym)) for part in parts) or (
        len(parts) == 1 and isinstance(parts[0], SliceV) and parts[0].step is None
    )


def put(run: Run, frame: Frame, owner: Value, index: Value, value: Value, node: ast.Subscript) -> None:
    """`owner[index] = value`."""
    old = owner.items.get(token(index)) if isinstance(owner, DictV) else None
    if old is not None and isinstance(owner, DictV):
        run.trail.put("[]", old[1], value)
    elif not isinstance(owner, Tensor) and not (isinstance(owner, Sym) and (owner.tensor or unknown(value))):
        run.trail.changed.append("[]")
    if isinstance(owner, Sym) and owner.tensor is not None:
        owner = owner.tensor
    if (
        isinstance(owner, Sym)
        and owner.kind == "any"
        and (isinstance(value, Tensor) or isinstance(index, (SliceV, Tensor)))
    ):
        if isinstance(index, (SliceV, Tensor)) or (
            isinstance(index, TupleV) and any(isinstance(p, SliceV) for p in index.items)
        ):
            owner = as_tensor(run, owner)
    if isinstance(owner, Tensor):
        tensor_put(run, frame, owner, index, value, node)
    elif isinstance(owner, ListV):
        place = run.place(frame, run.statement or node)
        _remember(run, value, node, place)
        _in_turns(run, index, value)
        if isinstance(index, int) and -len(owner.items) <= index < len(owner.items):
            owner.items[index] = value
        elif isinstance(index, SliceV):
            _slice_put(run, frame, owner, index, value, node)
        elif owner.items and not _beyond(owner, index):
            owner.items[-1] = value
            owner.open = True
        else:
            owner.items.append(value)
            owner.open = True
    elif isinstance(owner, DictV):
        held = owner.items.get(token(index))
        _remember(run, value, node, run.place(frame, run.statement or node))
        _in_turns(run, index, value)
        dict_set(owner, index, value)
        if held is not None:
            lifetime.replaced(run, frame, held[1], value)
        else:
            counting.grown(run, owner)
    elif isinstance(owner, Instance):
        if call_special(run, frame, owner, "__setitem__", [index, value], node) is not MISSING:
            return
        children = owner.attributes.get("__children__")
        if isinstance(children, (ListV, DictV)) and classes.holds(owner.cls):
            put(run, frame, children, index, value, node)
            return
        if (
            isinstance(children, ListV)
            and isinstance(index, int)
            and -len(children.items) <= index < len(children.items)
        ):
            modules.replace_child(owner, index % len(children.items), value)
        elif isinstance(children, DictV):
            dict_set(children, index, value)
    elif isinstance(owner, ArrayV):
        if owner.memory_of is not None:
            torchcalls.array_write(run, frame, owner, node, "[...] =")
    elif isinstance(owner, Sym):
        owner.items[f"[{token(index)!r}]"] = value


def _beyond(owner: ListV, index: Value) -> bool:
    """An index of a list of unknown length that hits none of the known items: a later one of a count."""
    if isinstance(index, Sym):
        return index.later
    return owner.open and isinstance(index, int)


def _slice_put(run: Run, frame: Frame, owner: ListV, index: SliceV, value: Value, node: ast.AST) -> None:

    source = iterate(run, frame, value, node)
    items = list(islice(source.source, bounds.MAX_ITEMS + 1))
    is_open = bounds.cut(run, items) or not source.exact
    known = index.known
    if known is not None and known.step in (None, 1):
        owner.items[known.start : known.stop] = items
        owner.open = owner.open or is_open
    else:
        owner.items.extend(items)
        owner.open = True
    owner.open = bounds.cut(run, owner.items) or owner.open


def _in_turns(run: Run, index: Value, value: Value) -> None:
    """`ring[step % 8] = v` overwrites its slots in turns: what it holds does not grow, unless it adds to them."""
    added = isinstance(run.statement, ast.AugAssign)
    if isinstance(index, Sym) and root(index.key)[:2] == ("op", "Mod") and not added:
        lifetime.release(run, tensors_in(value))


def _remember(run: Run, value: Value, node: ast.Subscript, place: Place) -> None:
    inside = not isinstance(value, (Tensor, Sym))
    run.weigh((value,))
    for tensor in lifetime.bound_in(value):
        machine.stored(run, tensor, place, spelling.source_text(node), inside=inside)


def tensor_put(
    run: Run, frame: Frame, owner: Tensor, index: Value, value: Value, node: ast.Subscript
) -> None:
    """`x[i] = v`: a write to `x`, through a view of it when the index is plain."""
    statement = run.statement
    place = run.place(frame, statement if statement is not None else node)
    if isinstance(value, Sym) and value.tensor is not None:
        value = value.tensor
    run.weigh((index, value))
    parts = index.items if isinstance(index, TupleV) else (index,)
    mask = any(_is_mask(part) for part in parts)
    if mask and isinstance(value, Tensor):
        reads.host_read(run, frame, node, "mask", owner, implicit=True)
    for each in parts:
        if isinstance(each, Tensor) and not _advanced(each):
            reads.host_read(run, frame, node, "index", each, implicit=True)
    indices = [t for part in parts for t in tensors_in(part)]
    part: Tensor | None = None
    taken = _taken(owner, parts)
    if owner.expanded is not False or owner.inference:
        part = run.tensor(place)
        advanced = [_advanced(one) for one in parts]
        direct = both(
            *[all_of for one, all_of in zip(parts, taken) if isinstance(one, bool) or not _advanced(one)]
        )
        # `index_put_` accepts overlapping memory, with a warning; a copy into a view does not.
        if not any(advanced):
            _lay_out(part, owner, parts)
            if isinstance(value, Tensor) and _itself(value, owner, part):
                part.expanded = False
        if direct is not True:
            part.base, part.view_sure = owner, direct is False
    holders.note_index(run, owner, parts, value, place)
    torchcalls.setitem(
        run,
        frame,
        owner,
        indices,
        value,
        place,
        node,
        masked=mask,
        part=part,
        whole=both(*taken),
        operands=_operands(run, owner, parts, value, place),
    )


def _operands(
    run: Run, owner: Tensor, parts: tuple[Value, ...], value: Value, place: Place
) -> Operands | None:
    """What `x[i] = v` writes and reads, where `v` lies in the memory of `x`."""
    if not isinstance(value, Tensor) or value.memory is not owner.memory or value is owner:
        return None
    statement = run.statement
    read = ((value, statement.value if isinstance(statement, ast.Assign) else None),)
    if any(_advanced(part) for part in parts):
        return Operands(owner, read, sharing=False)
    target = run.tensor(place, memory=owner.memory)
    target.dtype, target.alias_sure, target.sure = owner.dtype, owner.alias_sure, owner.sure
    _lay_out(target, owner, parts)
    sizes, given = known(target), known(value)
    # What is spread over several rows is not dense, so that torch cannot tell.
    return Operands(target, read) if sizes is not None and sizes == given else None


def _taken(owner: Tensor, parts: tuple[Value, ...]) -> list[Tri]:
    """Of each part of an index whether it takes all of its dimension: `:`, `...`, `0:3` of three.

    Torch makes no view for such a part; where all of them are such, `x[i] = v` writes `x` directly.
    """
    sizes = known(owner)
    if len(parts) - parts.count(Ellipsis) > len(sizes or ()) or any(map(_is_mask, parts)):
        # A mask stands for as many dimensions as it has.
        sizes = None
    rest = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    taken: list[Tri] = []
    for at, part in enumerate(parts):
        # Behind `...` dimensions count from the last one.
        size = sizes[at if at < rest else at - len(parts)] if sizes is not None and at != rest else None
        taken.append(part is Ellipsis or _all_of(part, size))
    return taken


def _all_of(part: Value, size: int | None) -> Tri:
    if not isinstance(part, SliceV):
        return None if isinstance(part, Sym) and part.kind == "any" else False
    if any(isinstance(bound, Sym) for bound in (part.lower, part.upper, part.step)):
        return None
    # Torch compares the bounds as they are written: `-3:` of three takes all, too, but through a view.
    if part.lower not in (None, 0) or part.step not in (None, 1):
        return False
    if not isinstance(part.upper, int):
        return part.upper is None
    return None if size is None and part.upper >= 0 else part.upper >= (size or 0)


def _itself(value: Tensor, owner: Tensor, part: Tensor) -> bool:
    """`x[0] = x[0]`: torch sees that nothing is to be copied before it looks for overlap."""
    return (
        value.memory is owner.memory
        and value.strides is not None
        and (value.shape, value.strides) == (part.shape, part.strides)
    )


def delete(run: Run, frame: Frame, owner: Value, index: Value, node: ast.AST) -> None:
    """`del owner[index]`."""
    if isinstance(owner, Instance):
        if call_special(run, frame, owner, "__delitem__", [index], node) is not MISSING:
            return
        owner = owner.attributes.get("__children__")
    if isinstance(owner, DictV):
        owner.items.pop(token(index), None)
    elif isinstance(owner, ListV):
        if isinstance(index, int) and -len(owner.items) <= index < len(owner.items):
            del owner.items[index]
        elif isinstance(index, SliceV):
            known = index.known
            if known is not None and known.step != 0:
                del owner.items[known]
