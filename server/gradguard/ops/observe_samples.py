"""Arguments to call torch with: the samples of torch's own test suite, varied, and plain ones where it has none."""

from __future__ import annotations

import itertools
import random
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db

from gradguard.ops.model import Form, Kind, Param
from gradguard.ops.observe import tensors_in

Sample = tuple[tuple[Any, ...], dict[str, Any]]

MAX_ELEMENTS = 4000
"""Larger samples are skipped: what is saved does not depend on size."""

_OPERATIONS = {
    "truediv": "true_divide",
    "div": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "invert": "bitwise_not",
    **{
        same: same
        for same in ["add", "sub", "mul", "pow", "matmul", "abs", "neg", "eq", "ne", "lt", "le", "gt", "ge"]
    },
    "pos": "positive",
}
"""Operators and the torch function of each."""


def bare_operation(name: str) -> str:
    """For an operator such as `Tensor.__radd__` the torch function behind it, with `_` when it works in place; else ``."""
    head, _, last = name.rpartition(".")
    if head != "operator" and not last.startswith("__"):
        return ""
    bare = last.strip("_")
    for prefix, suffix in (("", ""), ("i", "_"), ("r", "")):
        if bare.startswith(prefix) and bare[len(prefix) :] in _OPERATIONS:
            return _OPERATIONS[bare[len(prefix) :]] + suffix
    return ""


def seed(value: int) -> None:
    torch.default_generator.manual_seed(value)
    numpy.random.seed(value)
    random.seed(value)


def _index() -> dict[str, list[tuple[Any, str]]]:
    """OpInfo entries by public name, each with the attribute that is the callable."""
    index: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for info in op_db:
        names = [info.name, *(a.name for a in info.aliases)]
        for name in dict.fromkeys(names):
            if name.startswith("__"):
                index[f"Tensor.{name}"].append((info, "op"))
                index[f"operator.{name.strip('_')}"].append((info, "op"))
                continue
            index[f"torch.{name}"].append((info, "op"))
            last = name.rsplit(".", 1)[-1]
            index[f"Tensor.{last}"].append((info, "op"))
            index[f"torch.nn.functional.{last}"].append((info, "op"))
            index[f"torch.{last}"].append((info, "op"))
    return dict(index)


_WEIGHT_FIRST = ("nn.functional.embedding", "nn.functional.embedding_bag")
"""Entries whose samples give the weight before the indices, other than the function takes them."""

_BY_NAME: dict[str, list[tuple[Any, str]]] = {}


def entries(name: str) -> list[Any]:
    """The OpInfo entries whose samples suit the callable of that name; the exact name goes first."""
    if not _BY_NAME:
        _BY_NAME.update(_index())
    candidates = [name]
    head, _, last = name.rpartition(".")
    bare = last.strip("_")
    operation = bare_operation(name)
    if operation or last.startswith("__"):
        candidates += [f"Tensor.__{bare}__", f"Tensor.{operation.rstrip('_')}"]
    elif last.endswith("_"):
        candidates += [f"{head}.{last[:-1]}", f"torch.nn.functional.{last[:-1]}", f"Tensor.{last[:-1]}"]
    found: list[Any] = []
    for candidate in candidates:
        for info, _ in _BY_NAME.get(candidate, ()):
            if info not in found:
                found.append(info)
        if found:
            break
    return found


def samples(name: str, form_limit: int) -> list[Sample]:
    """Samples of the test suite for a callable, at most `form_limit` from each entry, spread over them."""
    out: list[Sample] = []
    for info in entries(name):
        for dtype in _dtypes(info):
            seed(0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = list(itertools.islice(info.sample_inputs("cpu", dtype), 400))
            except Exception:  # an entry that cannot make samples here simply gives none
                continue
            pairs = [((s.input, *s.args), dict(s.kwargs)) for s in found]
            if info.name in _WEIGHT_FIRST:
                pairs = [((args[1], args[0], *args[2:]), kwargs) for args, kwargs in pairs]
            pairs = [p for p in pairs if usual(p)]
            if len(pairs) > form_limit:
                step = len(pairs) / form_limit
                pairs = [pairs[int(i * step)] for i in range(form_limit)]
            if pairs:
                out += pairs
                break
    return out


def usual(sample: Sample) -> bool:
    """Neither large nor with an empty tensor, for which torch often takes a short way out."""
    sizes = [t.numel() for t in tensors_in(list(sample))]
    return sum(sizes) <= MAX_ELEMENTS and all(sizes)


def _dtypes(info: Any) -> list[torch.dtype]:
    supported = info.supported_dtypes("cpu")
    order = [
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.bool,
    ]
    return [d for d in order if d in supported] or list(supported)[:1]


# --- variations ----------------------------------------------------------------------------------------------------

_CHOICES: dict[str, tuple[Any, ...]] = {
    "reduction": ("none", "mean", "sum"),
    "approximate": ("none", "tanh"),
    "mode": (),
}


def variations(form: Form, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same call with one argument changed: flags flipped, optional tensors left out, exponents and rates moved."""
    for param in form.params:
        given = values.get(param.name)
        if param.name in ("out", "requires_grad", "pin_memory"):
            continue
        for other in _others(param, given):
            yield {**{k: v for k, v in values.items() if k != param.name}, param.name: other}
        if param.name in values and param.default is not None and isinstance(given, torch.Tensor):
            yield {k: v for k, v in values.items() if k != param.name}


def _others(param: Param, given: Any) -> tuple[Any, ...]:
    if param.kind is Kind.BOOL:
        now = given if given is not None else param.default == "True"
        return (not now,)
    if param.name in _CHOICES and isinstance(given, (str, type(None))):
        return tuple(c for c in _CHOICES[param.name] if c != given)
    if param.name == "p" and isinstance(given, (int, float)):
        return tuple(v for v in (0.0, 1.0, 2.0, given) if v != given)
    if param.name == "exponent" and isinstance(given, (int, float)):
        return tuple(v for v in (0, 1, 2, 3.5) if v != given)
    return ()


def noncontiguous(value: Any) -> Any:
    """A copy laid out in memory with first and last dimension exchanged, where there are two."""
    if isinstance(value, torch.Tensor) and value.ndim >= 2 and value.layout == torch.strided:
        return value.detach().transpose(0, -1).contiguous().transpose(0, -1)
    return value


DTYPES = (
    torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip


def recast(values: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The same arguments with the first tensor in another dtype."""
    first = next((n for n, v in values.items() if isinstance(v, torch.Tensor)), None)
    return {n: v.to(dtype) if n == first else v for n, v in values.items()}


# --- plain arguments -----------------------------------------------------------------------------------------------


def plain(form: Form) -> Iterator[dict[str, Any]]:
    """Simple arguments by kind, for callables that the test suite does not know."""
    required = [p for p in form.params if p.default is None]
    shapes = [(3, 3), (4,), (2, 3, 4), (2, 3, 4, 4), ()]
    numbers: list[list[Any]] = [
        [_plain_other(p, k) for k in range(2)] for p in required if p.kind is not Kind.TENSOR
    ]
    tensors = [p.name for p in required if p.kind is Kind.TENSOR]
    for makes in _MIXTURES:
        for shape in shapes:
            for others in itertools.islice(itertools.product(*numbers), 4):
                rest = iter(others)
                made = {n: makes[min(i, len(makes) - 1)](shape) for i, n in enumerate(tensors)}
                yield {
                    p.name: made[p.name] if p.name in made else _shaped(next(rest), shape) for p in required
                }


def _shaped(value: Any, shape: tuple[int, ...]) -> Any:
    if value == "tensors":
        return [_floats(shape), _floats(shape)]
    if value == "shape":
        return list(shape)
    return value


def _plain_other(param: Param, variant: int) -> Any:
    choices: dict[Kind, tuple[Any, Any]] = {
        Kind.TENSORS: ("tensors", "tensors"),
        Kind.NUMBER: (2, 0.5),
        Kind.INT: (0, 1),
        Kind.INTS: ("shape", [0]),
        Kind.BOOL: (True, False),
        Kind.FLOAT: (0.5, 2.0),
        Kind.STR: ("mean", "cpu"),
        Kind.DTYPE: (torch.float32, torch.float64),
    }
    if param.kind in choices:
        return choices[param.kind][variant]
    if param.name in ("device", "other_device"):
        return "cpu"
    return ("tensors", 0)[variant]


def _floats(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape) * 0.8 + 0.1


def _ints(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randint(0, 3, shape)


def _bools(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape) > 0.5


def _complex(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.complex64)


_MIXTURES = (
    (_floats,),
    (_bools, _floats),
    (_floats, _ints),
    (_floats, _bools),
    (_ints,),
    (_bools,),
    (_complex,),
)
"""What to make the first tensor, and the others."""
