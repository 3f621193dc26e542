"""Arguments to call torch with: the samples of torch's own test suite, and plain ones where it has none."""

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
from tools.optable.observe import tensors_in

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
