"""dtypes and devices, as far as aliasing depends on them.

Only what decides whether memory is shared is followed: `to` returns the tensor itself where dtype and device
stay.
"""

from __future__ import annotations

from gradguard.engine.autograd import layout
from gradguard.engine.autograd.plan import short
from gradguard.engine.domain.tensors import Tensor, Tri
from gradguard.engine.domain.values import ListV, Sym, TorchName, TupleV, Value

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


def of_type(text: str) -> TorchName:
    """`torch.cuda.LongTensor`, as it used to be written, as a dtype."""
    return TorchName("torch." + text.rpartition(".")[2].removesuffix("Tensor").lower())


def cast_target(method: str) -> str | None:
    """dtype that a method such as `float` or `long` converts to."""
    return _DTYPES.get(method) if method != "char" else "int8"


_KEEP_INTEGERS = frozenset({
    "add", "sub", "mul", "neg", "abs", "clamp", "cat", "stack", "where", "gather", "index_select", "clone", "sum", "prod", "cumsum", "max",
    "min", "maximum", "minimum", "sort", "roll", "flip", "repeat", "tile", "radd", "rsub", "rmul", "masked_fill", "getitem", "index",
    "bitwise_not", "invert", "logical_not", "and", "or", "xor", "to", "contiguous", "floordiv", "mod", "squeeze", "unsqueeze", "scatter",
})  # fmt: skip


_WIDEN = frozenset({"sum", "prod", "cumsum", "cumprod", "nansum"})
"""Whose results of integers and truth values are `int64`, whichever they were."""

_ARITHMETIC = frozenset({"add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod", "pow"})


def like(op: str, made: Tensor, tensors: list[Tensor], *, differentiable: bool) -> None:
    """Facts a fresh result takes from its tensor arguments."""
    if not tensors:
        return
    devices = {t.device for t in tensors}
    made.device = devices.pop() if len(devices) == 1 else None
    if differentiable and len(tensors) == 1 and tensors[0].floating:
        made.dtype = tensors[0].dtype
    elif differentiable:
        floating = [t for t in tensors if t.floating is not False]
        dtypes = {t.dtype for t in floating or tensors}
        made.dtype = dtypes.pop() if len(dtypes) == 1 else None
        if not floating and short(op) in _WIDEN:
            made.dtype = "int64"
        elif not floating and made.dtype is not None and short(op) not in _KEEP_INTEGERS:
            # `sin` of integers is floating, `neg` of integers is not: where it is not known it stays open.
            made.dtype = None


def meet(tensors: list[Tensor]) -> None:
    """Operands of a pointwise op lie on one device, but for those without dimensions, which may come from the CPU."""
    if any(t.device == "cpu" and t.shape for t in tensors):
        for tensor in tensors:
            tensor.device = tensor.device or "cpu"


def result_dtype(op: str, made: Tensor, values: dict[str, Value]) -> None:
    """dtype that the op itself or its `dtype` argument gives."""
    name = short(op)
    if name in _COMPARISONS:
        made.dtype = "bool"
    elif name in _INDICES:
        made.dtype = "int64"
    elif name == "float_power":
        made.dtype = "float64" if made.floating and not (made.dtype or "").startswith("complex") else None
    elif name in _TO_COMPLEX:
        made.dtype = {"float32": "complex64", "float64": "complex128"}.get(made.dtype or "")
    elif name in _TO_REAL:
        made.dtype = None
    dtype = values.get("dtype")
    asked = dtype_of(dtype) if dtype is not None else None
    if asked:
        made.dtype = asked
    elif name in _CASTS and cast_target(name):
        made.dtype = cast_target(name)
    elif made.floating is False and name in _ARITHMETIC:
        # A number takes a tensor along to its own kind: `mask + 1` counts, `counts + 0.5` is floating.
        operands = [values.get(each) for each in ("self", "other", "exponent")]
        numbers = [value for value in operands if type(value) in (int, float)]
        if any(isinstance(number, float) for number in numbers):
            made.dtype = None
        elif numbers and made.dtype == "bool":
            made.dtype = "int64"


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "any", "all", "greater", "less", "not_equal", "isclose"})  # fmt: skip
_INDICES = frozenset(
    {"argmax", "argmin", "argsort", "nonzero", "searchsorted", "bucketize", "multinomial", "count_nonzero"}
)
CASTS = ("float", "double", "half", "bfloat16", "int", "long", "short", "bool", "byte", "char")
"""Methods that give a real tensor the dtype that they are named after."""
_CASTS = frozenset({*CASTS, "cfloat", "cdouble"})
_TO_COMPLEX = frozenset({
    "complex", "eig", "eigvals", "fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2", "ihfftn", "polar", "rfft", "rfft2",
    "rfftn", "stft", "view_as_complex",
})  # fmt: skip
"""Complex numbers of real ones, as seen for every differentiable op of torch 2.13."""
_TO_REAL = frozenset({"hfft", "hfft2", "hfftn", "irfft", "irfft2", "irfftn", "istft"})


MAX_PIECES = 64
"""Tensors that one call gives which are followed one by one."""


def list_length(op: str, values: dict[str, Value]) -> int | None:
    """How many tensors `split`, `chunk`, `unbind` and their like return."""
    name = op.rpartition(".")[2].removeprefix("unsafe_")
    source = values.get("self", values.get("input"))
    shape = source.shape if isinstance(source, Tensor) else None
    dim = values.get("dim", 0)
    size = shape[dim] if shape and isinstance(dim, int) and -len(shape) <= dim < len(shape) else None
    if name in ("unbind", "__iter__"):
        return size if isinstance(size, int) and 0 < size <= MAX_PIECES else None
    if name in ("chunk", "tensor_split", "hsplit", "vsplit", "dsplit"):
        for key in ("chunks", "sections", "indices_or_sections", "input"):
            count = values.get(key)
            if isinstance(count, int):
                return min(count, size) if isinstance(size, int) and name == "chunk" else count
    if name == "tensor_split" and isinstance(values.get("indices"), int):
        count = values["indices"]
        return count if isinstance(count, int) else None
    indices = values.get("indices")
    if name == "tensor_split" and isinstance(indices, (ListV, TupleV)):
        return len(indices.items) + 1
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
    if name == "viewable":
        return layout.viewable(source, values, op)
    if name == "contiguous":
        wanted = values.get("memory_format")
        return source.contiguous if wanted is None else layout.lies_as(source, wanted)
    method = op.rpartition(".")[2]
    if name == "same_dtype":
        return _same_dtype(source, values, method)
    if name == "same_device":
        return _same_device(source, values, method)
    if name == "same_shape":
        return layout.same_shape(source, values, method)
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
