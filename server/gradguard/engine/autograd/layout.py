"""Where a tensor's elements lie: sizes, strides, contiguity and overlap of views and fresh results."""

from __future__ import annotations

from gradguard.engine.autograd.plan import short
from gradguard.engine.autograd.sizes import known, pointwise
from gradguard.engine.domain import strides
from gradguard.engine.domain.strides import Shape, product
from gradguard.engine.domain.tensors import Tensor, Tri
from gradguard.engine.domain.values import ListV, TorchName, TupleV, Value
from gradguard.ops.model import Op

Values = dict[str, Value]


def lay_out(made: Tensor, shape: tuple[object, ...] | None, steps: Shape | None) -> None:
    """Set sizes and strides, and what follows from them."""
    made.shape = shape if strides.possible(shape) else None
    made.strides = steps
    sizes = known(made)
    if sizes is not None and steps is not None and len(sizes) == len(steps):
        made.contiguous = strides.is_contiguous(sizes, steps)
        made.expanded = strides.overlaps(sizes, steps)
    else:
        made.strides = None


ROW_BY_ROW = frozenset({"contiguous", "flatten", "ravel", "reshape"})
"""Ops whose copies lie row by row, however their argument lies."""

KEEPS_ORDER = frozenset({"clone", "flip"})
"""Ops besides those that work element by element whose results lie as their argument does."""

_RELAID = frozenset({"bernoulli", "masked_fill", "resize_as", "where"})
"""Element by element, and yet row by row of an argument that lies otherwise."""


def keeps_order(op: Op) -> bool:
    """Whether the result of an op on one dense tensor has its strides."""
    name = short(op.name)
    return name in KEEPS_ORDER or (pointwise(op) and name not in _RELAID)


def fresh(
    made: Tensor, shape: tuple[object, ...] | None, tensors: list[Tensor], op: Op | None = None
) -> None:
    """A result with memory of its own.

    Ops on contiguous tensors give contiguous ones; some on one dense permuted tensor keep its strides.
    """
    made.shape = shape if strides.possible(shape) else None
    sizes = known(made)
    if all(t.contiguous is True for t in tensors) or (op is not None and _rows_only(op, tensors)):
        made.contiguous = True
        made.strides = strides.contiguous_strides(sizes) if sizes is not None else None
        return
    made.contiguous = None
    if (
        len(tensors) == 1
        and op is not None
        and keeps_order(op)
        and tensors[0].strides is not None
        and sizes is not None
        and sizes == known(tensors[0])
    ):
        steps = tensors[0].strides
        order = sorted(range(len(sizes)), key=lambda i: -steps[i])
        dense = strides.contiguous_strides(tuple(sizes[i] for i in order))
        if dense == tuple(steps[i] for i in order):
            lay_out(made, sizes, steps)


def rows(made: Tensor, picked: Shape, source: Tensor, sizes: Shape) -> None:
    """`source[index]`: as many copies of rows as `picked` has, each laid in the order of what it was copied from."""
    made.shape, made.strides, made.contiguous = (*picked, *sizes[1:]), None, None
    if not strides.possible(made.shape):
        made.shape = None
        return
    if source.contiguous is True:
        fresh(made, made.shape, [])
        return
    steps = source.strides
    # In what order torch lays dimensions that repeat the same elements depends on more.
    if steps is not None and 0 not in steps:
        order = sorted(range(1, len(sizes)), key=lambda dim: -steps[dim])
        dense = strides.contiguous_strides((*picked, *(sizes[dim] for dim in order)))
        inner = dict(zip(order, dense[len(picked) :]))
        lay_out(made, made.shape, (*dense[: len(picked)], *(inner[dim] for dim in range(1, len(sizes)))))


def _rows_only(op: Op, tensors: list[Tensor]) -> bool:
    return len(tensors) == 1 and short(op.name) in ROW_BY_ROW


def view(op: str, made: Tensor, values: Values, source: Tensor) -> None:
    """Sizes and strides of a view of `source`."""
    name = op.rpartition(".")[2].strip("_")
    sizes, steps, offset = known(source), source.strides, source.offset
    made.strides = made.offset = None
    if sizes is not None and steps is None:
        # Sizes of a view follow from those of its source, wherever its elements lie.
        likewise = _laid_out(name, values, sizes, strides.contiguous_strides(sizes))
        shape = likewise[0] if likewise is not None else _shape_only(name, values, source)
        made.shape = shape if strides.possible(shape) else None
        made.contiguous = True if source.contiguous is True and name in _KEEPS_CONTIGUOUS else None
        if name in _EXPANDS:
            spread = likewise is not None and strides.overlaps(*likewise)
            made.expanded = True if spread else None if source.expanded is None else source.expanded
        return
    if sizes is None or steps is None:
        made.shape = _shape_only(name, values, source)
        made.contiguous = True if source.contiguous is True and name in _KEEPS_CONTIGUOUS else None
        if name in _EXPANDS:
            made.expanded = None
        return
    laid = _laid_out(name, values, sizes, steps)
    if laid is None:
        made.shape = None
        made.contiguous = None
        made.expanded = None if name in _EXPANDS or source.expanded is not False else source.expanded
        return
    lay_out(made, *laid)
    made.offset = behind(offset, _shift(name, values, sizes, steps))


def behind(offset: int | None, shift: int | None) -> int | None:
    """Where a part begins, so many elements behind the beginning of its whole; None where either is not known."""
    return None if offset is None or shift is None else offset + shift


def _shift(name: str, values: Values, sizes: Shape, steps: Shape) -> int | None:
    """How many elements behind that of its source a view's first element lies."""
    if name not in ("select", "narrow"):
        return 0
    dim = _dim(values.get("dim"), len(sizes))
    start = values.get("index" if name == "select" else "start")
    if dim is None or not isinstance(start, int) or not sizes[dim]:
        return None
    return (start if start >= 0 else start + sizes[dim]) * steps[dim]


_EXPANDS = frozenset({"expand", "expand_as", "broadcast_to"})
_KEEPS_CONTIGUOUS = frozenset({
    "view", "reshape", "flatten", "ravel", "contiguous", "unflatten", "view_as", "reshape_as", "squeeze", "unsqueeze", "alias",
})  # fmt: skip


def _shape_only(name: str, values: Values, source: Tensor) -> tuple[object, ...] | None:
    if name in ("view", "reshape", "expand", "broadcast_to"):
        return sizes_of(values.get("size", values.get("shape", values.get("sizes"))))
    if name in ("t", "T") and source.shape is not None and len(source.shape) <= 2:
        return source.shape[::-1]
    if name in ("contiguous", "alias"):
        return source.shape
    return None


def _laid_out(name: str, values: Values, sizes: Shape, steps: Shape) -> tuple[Shape, Shape] | None:
    rank = len(sizes)
    if name in ("view", "reshape", "view_as", "reshape_as", "unflatten"):
        return _viewed(_wanted(name, values, sizes), sizes, steps)
    if name in ("flatten", "ravel"):
        return _viewed(_flattened(values, sizes), sizes, steps)
    if name in _EXPANDS:
        wanted = (
            known(values.get("other"))
            if name == "expand_as"
            else _ints(values.get("size", values.get("sizes")))
        )
        return None if wanted is None else strides.expanded(sizes, steps, wanted)
    if name in (
        "t",
        "T",
        "mT",
        "adjoint",
        "H",
        "mH",
        "transpose",
        "swapaxes",
        "swapdims",
        "permute",
        "movedim",
        "moveaxis",
    ):
        order = _order(name, values, rank)
        return None if order is None else (tuple(sizes[i] for i in order), tuple(steps[i] for i in order))
    if name == "unsqueeze":
        at = _dim(values.get("dim"), rank + 1)
        if at is None:
            return None
        step = sizes[at] * steps[at] if at < rank else 1
        return (*sizes[:at], 1, *sizes[at:]), (*steps[:at], step, *steps[at:])
    if name.startswith("atleast_"):
        return _padded(int(name[8]), sizes, steps)
    if name == "squeeze":
        return _squeezed(values, sizes, steps)
    if name in ("select", "narrow"):
        return _selected(name, values, sizes, steps)
    if name == "unfold":
        return _unfolded(values, sizes, steps)
    if name in ("detach", "alias", "contiguous", "to", "requires_grad"):
        return sizes, steps
    return None


def _unfolded(values: Values, sizes: Shape, steps: Shape) -> tuple[Shape, Shape] | None:
    """Windows of one dimension, each in a new last dimension."""
    at, size, step = _dim(values.get("dimension"), len(sizes)), values.get("size"), values.get("step")
    if at is None or not isinstance(size, int) or not isinstance(step, int) or step < 1:
        return None
    if not 0 <= size <= sizes[at]:
        return None
    count = (sizes[at] - size) // step + 1
    return (*sizes[:at], count, *sizes[at + 1 :], size), (
        *steps[:at],
        steps[at] * step,
        *steps[at + 1 :],
        steps[at],
    )


def _padded(least: int, sizes: Shape, steps: Shape) -> tuple[Shape, Shape]:
    """`atleast_2d` and its like: a vector is a row, a matrix the first of many in the last dimension."""
    if len(sizes) >= least:
        return sizes, steps
    if len(sizes) == 2:
        return (*sizes, 1), (*steps, 1)
    if not sizes:
        return (1,) * least, (1,) * least
    return (
        ((1, *sizes), (sizes[0] * steps[0], *steps))
        if least == 2
        else ((1, *sizes, 1), (sizes[0] * steps[0], *steps, 1))
    )


def _viewed(wanted: Shape | None, sizes: Shape, steps: Shape) -> tuple[Shape, Shape] | None:
    if wanted is None:
        return None
    new = strides.view_strides(sizes, steps, wanted)
    return None if new is None else (wanted, new)


def _wanted(name: str, values: Values, sizes: Shape) -> Shape | None:
    if name in ("view_as", "reshape_as"):
        return known(values.get("other"))
    if name == "unflatten":
        dim, parts = _dim(values.get("dim"), len(sizes)), _ints(values.get("sizes"))
        if dim is None or parts is None:
            return None
        return (*sizes[:dim], *_inferred(parts, sizes[dim]), *sizes[dim + 1 :])
    wanted = _ints(values.get("size", values.get("shape")))
    return None if wanted is None else _inferred(wanted, product(sizes) or 0)


def _inferred(wanted: Shape, total: int) -> Shape:
    """`-1` filled in."""
    rest = 1
    for size in wanted:
        rest *= size if size != -1 else 1
    return tuple((total // rest if rest else 0) if size == -1 else size for size in wanted)


def wanted_shape(op: str, values: Values, source: Tensor) -> Shape | None:
    """Sizes that `reshape` or `flatten` is asked for."""
    name = op.rpartition(".")[2]
    sizes = known(source)
    if sizes is None:
        return None
    return _flattened(values, sizes) if name in ("flatten", "ravel") else _wanted(name, values, sizes)


def _flattened(values: Values, sizes: Shape) -> Shape | None:
    rank = len(sizes)
    if rank == 0:
        return (1,)
    first = _dim(values.get("start_dim", 0), rank)
    last = _dim(values.get("end_dim", -1), rank)
    if first is None or last is None or first > last:
        return None
    return (*sizes[:first], product(sizes[first : last + 1]) or 0, *sizes[last + 1 :])


def _order(name: str, values: Values, rank: int) -> list[int] | None:
    order = list(range(rank))
    if name in ("t", "T"):
        return order[::-1] if rank <= 2 or name == "T" else None
    if name in ("mT", "adjoint", "H", "mH"):
        return [*order[:-2], *order[-2:][::-1]] if rank >= 2 else None
    if name == "permute":
        dims = _ints(values.get("dims"))
        if dims is None or sorted(d % rank if rank else 0 for d in dims) != order:
            return None
        return [d % rank for d in dims]
    if name in ("movedim", "moveaxis"):
        source, target = _dim(values.get("source"), rank), _dim(values.get("destination"), rank)
        if source is None or target is None:
            return None
        order.remove(source)
        order.insert(target, source)
        return order
    first = _dim(values.get("dim0", values.get("axis0")), rank)
    second = _dim(values.get("dim1", values.get("axis1")), rank)
    if first is None or second is None:
        return None
    order[first], order[second] = order[second], order[first]
    return order


def _squeezed(values: Values, sizes: Shape, steps: Shape) -> tuple[Shape, Shape] | None:
    dim = values.get("dim")
    if dim is None:
        kept = [i for i, size in enumerate(sizes) if size != 1]
    else:
        dims = _ints(dim)
        if dims is None or any(_dim(d, len(sizes)) is None for d in dims):
            return None
        gone = {d % len(sizes) for d in dims} if sizes else set()
        kept = [i for i, size in enumerate(sizes) if not (i in gone and size == 1)]
    return tuple(sizes[i] for i in kept), tuple(steps[i] for i in kept)


def _selected(name: str, values: Values, sizes: Shape, steps: Shape) -> tuple[Shape, Shape] | None:
    dim = _dim(values.get("dim"), len(sizes))
    if dim is None:
        return None
    if name == "select":
        return (*sizes[:dim], *sizes[dim + 1 :]), (*steps[:dim], *steps[dim + 1 :])
    length = values.get("length")
    return ((*sizes[:dim], length, *sizes[dim + 1 :]), steps) if isinstance(length, int) else None


def _grid(made: Tensor, shapes: list[Shape | None], at: int, of: Tensor, indexing: str) -> None:
    """The grid of one axis: every other axis repeats it."""
    if any(shape is None or len(shape) != 1 for shape in shapes) or of.strides is None:
        return
    sizes = [shape[0] for shape in shapes if shape is not None]
    steps = [of.strides[0] if index == at else 0 for index in range(len(sizes))]
    if indexing == "xy" and len(sizes) > 1:
        sizes[0], sizes[1], steps[0], steps[1] = sizes[1], sizes[0], steps[1], steps[0]
    lay_out(made, tuple(sizes), tuple(steps))


def one_of(
    op: str, made: Tensor, tensors: list[Tensor], of: Tensor, indexing: Value = "ij", index: int = 0
) -> None:
    """One of the views that an op on a list of tensors makes, one of each."""
    made.strides = made.contiguous = made.shape = None
    made.expanded, made.offset = of.expanded, of.offset
    if not op.rpartition(".")[2].startswith(("broadcast", "meshgrid")):
        return
    made.expanded = None
    shapes = [known(tensor) for tensor in tensors]
    own = known(of)
    if "meshgrid" in op:
        _grid(made, shapes, index, of, str(indexing))
        return
    wanted = (
        strides.broadcast(*[shape for shape in shapes if shape is not None]) if None not in shapes else None
    )
    if wanted is not None and own is not None and of.strides is not None and "broadcast" in op:
        laid = strides.expanded(own, of.strides, wanted)
        if laid is not None:
            lay_out(made, *laid)


def piece(op: str, made: Tensor, values: Values, source: Tensor, index: int) -> None:
    """One of the views that `split`, `chunk` or `unbind` makes."""
    name = op.rpartition(".")[2].removeprefix("unsafe_")
    sizes, steps = known(source), source.strides
    made.strides = made.contiguous = made.shape = made.offset = None
    dim = _dim(values.get("dim", values.get("=dim", 0)), len(sizes)) if sizes is not None else None
    if sizes is None or steps is None or dim is None:
        made.expanded = None if source.expanded is not False else False
        return
    if name in ("unbind", "__iter__"):
        lay_out(made, (*sizes[:dim], *sizes[dim + 1 :]), (*steps[:dim], *steps[dim + 1 :]))
        made.offset = behind(source.offset, index * steps[dim])
        return
    lengths = [_piece_length(name, values, sizes[dim], each) for each in range(index + 1)]
    length = lengths[-1]
    if length is not None:
        lay_out(made, (*sizes[:dim], length, *sizes[dim + 1 :]), steps)
        before = sum(each or 0 for each in lengths[:-1])
        made.offset = behind(source.offset, before * steps[dim])
    else:
        made.expanded = None if source.expanded is not False else False


_SECTIONS = ("sections", "indices_or_sections", "indices")


def _piece_length(name: str, values: Values, size: int, index: int) -> int | None:
    if name == "chunk":
        count = values.get("chunks")
        if not isinstance(count, int) or count < 1:
            return None
        each = -(-size // count)
        return max(0, min(each, size - each * index))
    if name == "tensor_split":
        count = next((v for v in map(values.get, _SECTIONS) if v is not None), None)
        if not isinstance(count, int) or count < 1:
            return None
        return size // count + (index < size % count)
    if name.startswith("split"):
        given = values.get("split_size", values.get("split_sizes", values.get("split_size_or_sections")))
        if isinstance(given, int):
            return max(0, min(given, size - given * index))
        parts = _ints(given)
        return parts[index] if parts is not None and index < len(parts) else None
    return None


def sizes_of(value: Value) -> tuple[object, ...] | None:
    """Sizes as written, None in the place of one that is not known."""
    sizes: tuple[object, ...] | None = None
    if isinstance(value, int):
        sizes = (value,)
    elif isinstance(value, (ListV, TupleV)):
        sizes = tuple(item if isinstance(item, int) else None for item in value.items)
    return sizes if strides.possible(sizes) else None


def _ints(value: Value) -> Shape | None:
    sizes = sizes_of(value)
    if sizes is None:
        return None
    ints = tuple(s for s in sizes if isinstance(s, int))
    return ints if len(ints) == len(sizes) else None


def _dim(value: Value, rank: int) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not -rank <= value < rank:
        return None
    return value % rank


def lies_as(tensor: Tensor, memory_format: Value) -> Tri:
    """Whether `contiguous` finds a tensor to have a memory format, and gives the tensor itself."""
    name = _format(memory_format)
    if name == "contiguous_format":
        return tensor.contiguous
    shape = known(tensor)
    if name.startswith("channels_last") and tensor.contiguous is True and shape is not None:
        # Of one channel, or of single places, both orders are the same.
        return None if shape[1:2] == (1,) or product(shape[2:]) == 1 else False
    return None


def said_to_lie_as(tensor: Tensor, memory_format: Value) -> Tri:
    """Whether `to` and the casts take a tensor to have a memory format already.

    They look at the order of the strides alone: every layout but that of the channels last is `contiguous_format`.
    """
    name = _format(memory_format)
    if name == "preserve_format":
        return True
    last = _channels_last(tensor)
    if name == "contiguous_format":
        return None if last is None else not last
    return last if name.startswith("channels_last") else None


def in_format(made: Tensor, memory_format: Value) -> None:
    """Lay a copy out as it was asked for."""
    name, shape = _format(memory_format), known(made)
    if name == "preserve_format":
        return
    made.contiguous = made.strides = None
    if shape is not None and name == "contiguous_format":
        lay_out(made, shape, strides.contiguous_strides(shape))
    elif shape is not None and name.startswith("channels_last") and len(shape) in (4, 5):
        lay_out(made, shape, strides.channels_last_strides(shape))


def _channels_last(tensor: Tensor) -> Tri:
    """Whether torch takes the strides for those of the channels last, which it asks of images and volumes only."""
    if tensor.shape is not None and len(tensor.shape) not in (4, 5):
        return False
    shape = known(tensor)
    if shape is None or tensor.strides is None:
        return False if tensor.contiguous is True else None
    if tensor.strides == strides.contiguous_strides(shape):
        return False
    return True if tensor.strides == strides.channels_last_strides(shape) else None


def _format(memory_format: Value) -> str:
    if memory_format is None:
        return "preserve_format"
    return memory_format.path.rpartition(".")[2] if isinstance(memory_format, TorchName) else ""


def same_shape(source: Tensor, values: Values, method: str) -> Tri:
    """Whether an op that hands its argument back where nothing changes does so."""
    if method == "cartesian_prod":
        tensors = values.get("tensors")
        return isinstance(tensors, Tensor) or (
            isinstance(tensors, (ListV, TupleV)) and len(tensors.items) == 1 and not tensors.open
        )
    if source.shape is None:
        listed = values.get("tensors") if method == "broadcast_tensors" else None
        alone = isinstance(listed, (ListV, TupleV)) and all(one is source for one in listed.items)
        return True if alone else None
    if method.startswith("atleast_"):
        return len(source.shape) >= int(method[8])
    if method == "broadcast_tensors":
        tensors = values.get("tensors")
        shapes = [known(one) for one in tensors.items] if isinstance(tensors, (ListV, TupleV)) else [None]
        sized = [shape for shape in shapes if shape is not None]
        return strides.broadcast(*sized) == known(source) if len(sized) == len(shapes) else None
    if method in ("flatten", "ravel"):
        # A scalar becomes a vector; a vector has nothing to flatten.
        return len(source.shape) == 1 if len(source.shape) < 2 else _same_flat(source, values)
    wanted = sizes_of(values.get("size", values.get("sizes")))
    return None if wanted is None else wanted == source.shape


def _same_flat(source: Tensor, values: Values) -> Tri:
    sizes = known(source)
    wanted = None if sizes is None else _flattened(values, sizes)
    return None if wanted is None else wanted == sizes


def viewable(source: Tensor, values: Values, op: str) -> Tri:
    """Whether `reshape`, `flatten` or `ravel` can do without a copy."""
    if source.contiguous is True or op.endswith(".ravel"):
        # `ravel` asks for contiguous memory before it takes a view.
        return source.contiguous
    sizes = known(source)
    wanted = wanted_shape(op, values, source)
    if sizes is None or source.strides is None or wanted is None:
        return None
    return strides.view_strides(sizes, source.strides, wanted) is not None
