"""Shapes of results, by kind of op.

How the sizes of a result follow from the arguments' is read off the op table where it can be: an op that has an
in-place twin gives the broadcast shape of its arguments, a form with `dim` and `keepdim` reduces. The rest are
the ops that rearrange or multiply.
"""

from __future__ import annotations

from gradguard.engine.autograd.plan import plan, short
from gradguard.engine.domain import strides
from gradguard.engine.domain.strides import Shape
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Instance, ListV, TupleV, Value
from gradguard.ops.model import Form, Kind, Op

Values = dict[str, Value]


def known(tensor: object) -> Shape | None:
    """Sizes of a tensor when all are known."""
    if not isinstance(tensor, Tensor) or tensor.shape is None:
        return None
    for size in tensor.shape:
        if not isinstance(size, int) or size < 0:
            return None
    return tensor.shape  # type: ignore[return-value]


def result_shape(op: Op, form: Form, values: Values, inplace: bool, module: Instance | None) -> Shape | None:
    """Shape of a fresh result, None when unknown."""
    name = short(op.name)
    if module is not None:
        return _module_shape(name, module, known(values.get("input")))
    planned = plan(form)
    tensors = [
        values[key]
        for _, key, kind in planned.coerced
        if kind is Kind.TENSOR and key != "out" and isinstance(values.get(key), Tensor)
    ]
    shapes = [known(tensor) for tensor in tensors]
    first = shapes[0] if shapes else None
    special = _SPECIAL.get(name)
    if special is not None:
        return special(values, first, tensors)
    if name in _SAME:
        return first
    names = planned.names
    if "keepdim" in names and "dim" in names:
        return _reduced(values, first)
    if len(tensors) == 1 and any(p.name == "keepdim" for other in op.forms for p in other.params):
        return ()
    if "reduction" in names:
        reduction = values.get("reduction", values.get("=reduction"))
        return () if reduction in ("mean", "sum") else None
    if pointwise(op) or inplace:
        if any(shape is None for shape in shapes) or not shapes:
            return None
        return strides.broadcast(*[shape for shape in shapes if shape is not None])
    return None


def pointwise(op: Op) -> bool:
    """Whether each number of the result comes from the numbers at its place in the arguments."""
    name = short(op.name)
    return (bool(op.inplace) or name in _BROADCAST) and name not in _SPECIAL and name not in _SAME


_SAME = frozenset({
    "softmax", "log_softmax", "softmin", "layer_norm", "normalize", "gelu", "silu", "mish", "softplus", "logsigmoid", "hardswish",
    "hardsigmoid", "softsign", "tanhshrink", "softshrink", "hardshrink", "prelu", "batch_norm", "instance_norm", "group_norm",
    "rms_norm", "clone", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "rrelu",
    "cumsum", "cumprod", "flip", "roll", "logcumsumexp", "sort", "argsort", "zeros_like", "ones_like", "neg", "pos", "positive",
    "isnan", "isinf", "isfinite", "logical_not", "bitwise_not", "invert", "abs", "absolute", "threshold", "to", "contiguous", "detach",
    "cummax", "cummin", "fill", "fill_diagonal", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "put", "renorm",
    "scatter", "scatter_add", "scatter_reduce", "select_scatter", "slice_scatter", "diagonal_scatter", "tril", "triu",
})  # fmt: skip
_BROADCAST = frozenset({
    "maximum", "minimum", "where", "add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "radd", "rsub", "rmul", "rtruediv", "rpow",
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "max", "min", "fmax", "fmin", "logaddexp", "logaddexp2", "isclose",
    "addcdiv", "addcmul", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "clamp", "clamp_max", "clamp_min", "clip", "copysign", "digamma", "div", "divide", "erfinv", "float_power", "floor_divide", "fmod", "gammainc", "gammaincc", "greater",
    "greater_equal", "heaviside", "hypot", "igamma", "igammac", "lerp", "less", "less_equal", "lgamma", "logical_and", "logical_or",
    "logical_xor", "masked_fill", "masked_scatter", "multiply", "mvlgamma", "nextafter", "not_equal", "polygamma", "remainder",
    "sgn", "sign", "subtract", "true_divide", "xlog1py", "xlogy", "zeta",
})  # fmt: skip


_SAME_MODULES = (
    "ReLU", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus", "Softsign", "Hardtanh", "Hardswish",
    "Hardsigmoid", "LogSigmoid", "Softmax", "LogSoftmax", "Softmin", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d", "Dropout2d",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "GroupNorm", "RMSNorm",
    "Identity", "PReLU", "RReLU", "Threshold", "Tanhshrink", "Softshrink", "Hardshrink", "ReLU6",
)  # fmt: skip


def _module_shape(name: str, module: Instance, shape: Shape | None) -> Shape | None:
    if module.attributes.get("reduction") in ("mean", "sum"):
        return ()
    if shape is None:
        return None
    if name == "Linear":
        size = module.attributes.get("out_features")
        return (*shape[:-1], size) if isinstance(size, int) and shape else None
    if name in ("RNNCell", "GRUCell"):
        size = module.attributes.get("hidden_size")
        return (*shape[:-1], size) if isinstance(size, int) and shape else None
    return shape if name in _SAME_MODULES else None


def _reduced(values: Values, shape: Shape | None) -> Shape | None:
    dim = values.get("dim", values.get("=dim"))
    keep = values.get("keepdim", values.get("=keepdim"))
    if dim is None and keep is False:
        return ()
    if shape is None or not isinstance(keep, bool):
        return None
    if dim is None:
        return tuple(1 for _ in shape)
    given = dim.items if isinstance(dim, (ListV, TupleV)) else (dim,)
    dims = [d for d in given if isinstance(d, int) and -len(shape) <= d < max(len(shape), 1)]
    if len(dims) < len(given):
        return None
    gone = {d % len(shape) for d in dims} if shape else set()
    if not dims:
        gone = set(range(len(shape)))
    if keep:
        return tuple(1 if i in gone else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in gone)


def _matmul(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    second = known(tensors[1]) if len(tensors) > 1 else None
    if first is None or second is None or not first or not second:
        return None
    if len(first) == 1 and len(second) == 1:
        return ()
    if len(first) == 1:
        return (*second[:-2], second[-1])
    if len(second) == 1:
        return first[:-1]
    batch = strides.broadcast(first[:-2], second[:-2])
    return None if batch is None else (*batch, first[-2], second[-1])


def _linear(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    weight = known(tensors[1]) if len(tensors) > 1 else None
    if first is None or weight is None:
        return None
    return (*first[:-1], weight[0]) if len(weight) == 2 else first[:-1]


def _cat(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    parts = values.get("tensors")
    shapes = (
        [known(t) for t in parts.items] if isinstance(parts, (ListV, TupleV)) and not parts.open else [None]
    )
    dim = values.get("dim", values.get("=dim", 0))
    if not shapes or any(s is None for s in shapes) or not isinstance(dim, int):
        return None
    sized = [s for s in shapes if s is not None]
    base = sized[0]
    if any(len(s) != len(base) for s in sized) or not -len(base) <= dim < len(base):
        return None
    at = dim % len(base)
    return (*base[:at], sum(s[at] for s in sized), *base[at + 1 :])


def _stack(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    parts = values.get("tensors")
    if not isinstance(parts, (ListV, TupleV)) or parts.open or not parts.items:
        return None
    base = known(parts.items[0])
    dim = values.get("dim", values.get("=dim", 0))
    if base is None or not isinstance(dim, int) or not -len(base) - 1 <= dim <= len(base):
        return None
    at = dim % (len(base) + 1)
    return (*base[:at], len(parts.items), *base[at:])


def _added(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    """`addmm` and its like: of the product, which the first argument is added to."""
    if len(tensors) != 3:
        return None
    left, right = known(tensors[1]), known(tensors[2])
    if left is None or right is None:
        return None
    if len(left) == len(right) == 1:
        return (*left, *right)
    return _matmul(values, left, tensors[1:])


def _rows(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    """`vstack`: vectors are rows."""
    parts = values.get("tensors")
    if not isinstance(parts, (ListV, TupleV)) or parts.open or not parts.items:
        return None
    shapes = [shape for shape in map(known, parts.items) if shape is not None]
    rows: list[Shape] = [shape if len(shape) > 1 else (1, *(shape or (1,))) for shape in shapes]
    if len(rows) < len(parts.items) or any(row[1:] != rows[0][1:] for row in rows):
        return None
    return (sum(row[0] for row in rows), *rows[0][1:])


def _embedding(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    indices, weight = known(values.get("indices", values.get("input"))), known(values.get("weight"))
    return (*indices, weight[1]) if indices is not None and weight is not None and len(weight) == 2 else None


def _like_index(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    return known(values.get("index"))


def _none(values: Values, first: Shape | None, tensors: list[Value]) -> Shape | None:
    return None


_SPECIAL = {
    "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "mv": _matmul, "dot": _matmul, "rmatmul": _matmul, "linear": _linear, "cat": _cat,
    "concat": _cat, "stack": _stack, "conv1d": _none, "conv2d": _none, "embedding": _embedding, "index_select": _none, "gather": _like_index,
    "addmm": _added, "addmv": _added, "addr": _added, "baddbmm": _added, "addbmm": _none, "vstack": _rows, "row_stack": _rows,
    "masked_select": _none, "nonzero": _none, "repeat": _none, "take": _none, "squeeze": _none, "unique": _none,
    "multi_head_attention_forward": _none, "einsum": _none, "getitem": _none,
}  # fmt: skip
