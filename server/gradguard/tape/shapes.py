"""Shapes, dtypes and strides, as far as aliasing depends on them.

Only what decides whether memory is shared is followed: whether a tensor is contiguous (`reshape` then makes a
view), its dtype (`to` then returns the tensor itself) and sizes where they are written in the source.
"""

from __future__ import annotations

from gradguard.tape.domain import Tensor, Tri
from gradguard.tape.values import ListV, Sym, TorchName, TupleV, Value

_DTYPES = {
    "float": "float32", "float32": "float32", "double": "float64", "float64": "float64", "half": "float16", "float16": "float16",
    "bfloat16": "bfloat16", "int": "int32", "int32": "int32", "long": "int64", "int64": "int64", "short": "int16", "int16": "int16",
    "int8": "int8", "uint8": "uint8", "bool": "bool", "cfloat": "complex64", "complex64": "complex64", "cdouble": "complex128",
    "complex128": "complex128", "byte": "uint8", "char": "int8",
}  # fmt: skip


def is_dtype(path: str) -> bool:
    """Whether a torch name is a dtype."""
    return path.startswith("torch.") and path[6:] in _DTYPES


def dtype_of(value: Value) -> str | None:
    """Canonical dtype name of a dtype value, None when unknown."""
    if isinstance(value, TorchName) and is_dtype(value.path):
        return _DTYPES[value.path[6:]]
    return None


def cast_target(method: str) -> str | None:
    """dtype that a method such as `float` or `long` converts to."""
    return _DTYPES.get(method) if method != "char" else "int8"


def like(made: Tensor, tensors: list[Tensor], *, differentiable: bool) -> None:
    """Facts a fresh result takes from its tensor arguments."""
    if not tensors:
        return
    devices = {t.device for t in tensors}
    made.device = devices.pop() if len(devices) == 1 else None
    if differentiable:
        floating = [t for t in tensors if t.floating is not False]
        dtypes = {t.dtype for t in floating or tensors}
        made.dtype = dtypes.pop() if len(dtypes) == 1 else None
    made.contiguous = True if all(t.contiguous is True for t in tensors) else None


def infer(op: str, made: Tensor, values: dict[str, Value], source: Tensor | None) -> None:
    """Shape, dtype and contiguity of a result, for the ops where aliasing later depends on it."""
    name = op.rpartition(".")[2].strip("_")
    if name in _COMPARISONS:
        made.dtype = "bool"
    elif name in _INDICES:
        made.dtype = "int64"
    dtype = values.get("dtype")
    if dtype_of(dtype):
        made.dtype = dtype_of(dtype)
    elif cast_target(name) and name in _CASTS:
        made.dtype = cast_target(name)
    if source is None:
        return
    shape = source.shape
    if name in ("transpose", "t", "swapaxes", "swapdims", "permute", "movedim", "mT", "T", "adjoint"):
        _transposed(made, source, name, values)
    elif name in (
        "view",
        "reshape",
        "flatten",
        "ravel",
        "contiguous",
        "unflatten",
        "view_as",
        "reshape_as",
        "squeeze",
        "unsqueeze",
    ):
        made.contiguous = True if source.contiguous is True or name in ("contiguous", "ravel") else None
        made.shape = _reshaped(name, values, shape)
    elif name in ("expand", "expand_as", "broadcast_to"):
        made.shape = _sizes(values.get("size", values.get("sizes")))
        made.contiguous = None
    elif name in _ELEMENTWISE and made.base is None:
        made.shape = shape if _single(values) else None
        if source.contiguous is not True:
            made.contiguous = source.contiguous if _single(values) and made.shape is not None else None
    elif name in ("detach", "clone", "to", "float", "double", "cpu", "requires_grad", "alias", "type_as"):
        made.shape = shape
        made.contiguous = source.contiguous


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "any", "all", "greater", "less", "not_equal", "isclose"})  # fmt: skip
_INDICES = frozenset(
    {"argmax", "argmin", "argsort", "nonzero", "searchsorted", "bucketize", "multinomial", "count_nonzero"}
)
_CASTS = frozenset({"float", "double", "half", "bfloat16", "int", "long", "short", "bool", "byte", "char"})
_ELEMENTWISE = frozenset({"exp", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt", "rsqrt", "abs", "log", "square", "neg", "add", "sub", "mul", "div", "pow", "clamp", "softmax", "log_softmax", "gelu", "silu", "truediv", "radd", "rmul", "rsub", "rtruediv", "rpow", "dropout", "round", "floor", "ceil", "reciprocal", "leaky_relu", "elu", "softplus"})  # fmt: skip


def _single(values: dict[str, Value]) -> bool:
    """One tensor among the arguments, so that nothing broadcasts."""
    return sum(isinstance(v, Tensor) for k, v in values.items() if not k.startswith("=")) == 1


def _transposed(made: Tensor, source: Tensor, name: str, values: dict[str, Value]) -> None:
    shape = source.shape
    made.contiguous = None
    if shape is None:
        return
    if name in ("t", "T", "mT", "adjoint") and len(shape) <= 2:
        made.shape = shape[::-1]
        big = [size for size in shape if size != 1]
        if len(shape) == 2 and all(isinstance(size, int) for size in shape):
            made.contiguous = (
                source.contiguous if len(big) < 2 else (False if source.contiguous is True else None)
            )
    elif name in ("transpose", "swapaxes", "swapdims"):
        first, second = values.get("dim0", values.get("axis0")), values.get("dim1", values.get("axis1"))
        if (
            isinstance(first, int)
            and isinstance(second, int)
            and -len(shape) <= min(first, second)
            and max(first, second) < len(shape)
        ):
            sizes = list(shape)
            sizes[first], sizes[second] = sizes[second], sizes[first]
            made.shape = tuple(sizes)
            moved = [shape[i] for i in sorted((first % len(shape), second % len(shape)))]
            if (
                all(isinstance(size, int) and size > 1 for size in moved)
                and moved
                and first % len(shape) != second % len(shape)
            ):
                made.contiguous = False if source.contiguous is True else None


def _reshaped(
    name: str, values: dict[str, Value], shape: tuple[object, ...] | None
) -> tuple[object, ...] | None:
    if name in ("view", "reshape"):
        sizes = _sizes(values.get("size", values.get("shape")))
        if sizes is not None and -1 in sizes:
            total = product(shape)
            rest = product(tuple(s for s in sizes if s != -1))
            if total is None or not rest:
                return tuple(None if s == -1 else s for s in sizes)
            return tuple(total // rest if s == -1 else s for s in sizes)
        return sizes
    if shape is None:
        return None
    if name == "contiguous":
        return shape
    if name == "unsqueeze":
        dim = values.get("dim")
        if isinstance(dim, int):
            at = dim if dim >= 0 else dim + len(shape) + 1
            return (*shape[:at], 1, *shape[at:])
    if name in ("flatten", "ravel") and not any(k in values for k in ("start_dim", "end_dim")):
        return (product(shape),)
    return None


def _sizes(value: Value) -> tuple[object, ...] | None:
    if isinstance(value, int):
        return (value,)
    if isinstance(value, (ListV, TupleV)):
        return tuple(item if isinstance(item, int) else None for item in value.items)
    return None


def product(shape: tuple[object, ...] | None) -> int | None:
    """Number of elements, None when a size is unknown."""
    if shape is None:
        return None
    total = 1
    for size in shape:
        if not isinstance(size, int):
            return None
        total *= size
    return total


def expands(source: Tensor, view: Tensor) -> Tri:
    """Whether an expand really repeats elements: yes, no where all sizes stay, maybe."""
    old, new = source.shape, view.shape
    if old is None or new is None:
        return None
    if len(new) > len(old) and any(isinstance(s, int) and s > 1 for s in new[: len(new) - len(old)]):
        return True
    unknown = False
    for was, now in zip(old[::-1], new[::-1], strict=False):
        if now == -1 or was == now:
            continue
        if was == 1 and isinstance(now, int) and now > 1:
            return True
        unknown = True
    return None if unknown else False


def list_length(op: str, values: dict[str, Value]) -> int | None:
    """How many tensors `split`, `chunk`, `unbind` and their like return."""
    name = op.rpartition(".")[2]
    source = values.get("self", values.get("input"))
    shape = source.shape if isinstance(source, Tensor) else None
    dim = values.get("dim", 0)
    size = shape[dim] if shape and isinstance(dim, int) and -len(shape) <= dim < len(shape) else None
    if name in ("unbind", "__iter__"):
        return size if isinstance(size, int) and 0 < size <= 64 else None
    if name in ("chunk", "tensor_split", "hsplit", "vsplit", "dsplit"):
        for key in ("chunks", "sections", "indices_or_sections", "input"):
            count = values.get(key)
            if isinstance(count, int):
                return min(count, size) if isinstance(size, int) and name == "chunk" else count
    for key in ("split_size", "split_sizes", "split_size_or_sections", "indices"):
        sizes = values.get(key)
        if isinstance(sizes, (ListV, TupleV)):
            return len(sizes.items)
        if isinstance(sizes, int) and isinstance(size, int) and sizes > 0:
            return -(-size // sizes)
    return None


def memory_fact(name: str, source: Tensor | None, values: dict[str, Value], op: str) -> Tri:
    """A fact of an alias condition about the tensor that would be aliased."""
    if source is None:
        return None
    if name == "contiguous" or name == "viewable":
        if source.contiguous is True:
            return True
        if name == "viewable" and source.contiguous is False:
            return _viewable(source, values, op)
        return source.contiguous
    method = op.rpartition(".")[2]
    if name == "same_dtype":
        return _same_dtype(source, values, method)
    if name == "same_device":
        return _same_device(source, values, method)
    if name == "same_shape":
        wanted = _sizes(values.get("size", values.get("sizes")))
        return None if wanted is None or source.shape is None else wanted == source.shape
    return None


def _viewable(source: Tensor, values: dict[str, Value], op: str) -> Tri:
    """A transposed matrix cannot be flattened without a copy; other shapes are left open."""
    sizes = _reshaped("reshape", values, source.shape)
    if op.endswith(("flatten", "ravel")) or (sizes is not None and len(sizes) == 1):
        return False
    return None


def _same_dtype(source: Tensor, values: dict[str, Value], method: str) -> Tri:
    if method in _CASTS:
        wanted = cast_target(method)
    elif method in ("cpu", "cuda", "contiguous"):
        return True
    else:
        other = values.get("other", values.get("tensor"))
        if isinstance(other, Tensor):
            wanted = other.dtype
            if wanted is None:
                return None
        elif "dtype" in values:
            wanted = dtype_of(values["dtype"])
            if values["dtype"] is None:
                return True
            if wanted is None:
                return None
        else:
            return True if not any(isinstance(v, Sym) for v in values.values()) else None
    return None if source.dtype is None else source.dtype == wanted


def _same_device(source: Tensor, values: dict[str, Value], method: str) -> Tri:
    if method == "cpu":
        return None if source.device is None else source.device == "cpu"
    if method == "cuda":
        return None if source.device is None else source.device == "accelerator"
    other = values.get("other", values.get("tensor"))
    if isinstance(other, Tensor):
        return None if source.device is None or other.device is None else source.device == other.device
    device = values.get("device")
    if device is None:
        return True
    if isinstance(device, str):
        wanted = "cpu" if device.startswith("cpu") else "accelerator"
        return None if source.device is None else source.device == wanted
    return None
