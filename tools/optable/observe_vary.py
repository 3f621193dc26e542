"""A call made again with one thing changed, so that what was seen can be told apart by what caused it.

Samples of a test suite vary several arguments together, and a condition learnt from them may name the wrong one.
Here each argument moves by itself: flags, words and numbers, sizes shorter and longer than the dimension, what has a
default with and without it, real and complex, one dtype among others, sizes that broadcast, the order in memory.
`crossed` then asks what combinations of named arguments do.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gradguard.ops.model import Form, Kind, Param
from tools.optable.observe import can_require_grad, replace_tensors, tensors_in
from tools.optable.observe_bind import default_of

Values = dict[str, Any]
Pool = dict[str, list[Any]]
"""Values that an argument was seen with, without tensors."""

A_POOL = 8
CROSSED = 48
"""Combinations tried of the arguments that conditions name."""

FIXED = frozenset(["out", "requires_grad", "pin_memory", "device", "layout", "memory_format", "generator"])
"""Arguments that say nothing about what is kept."""

UNSAFE = {
    "torch.embedding_bag": "reads past the end when offsets and sizes do not fit",
    "torch.ctc_loss": "reads past the end when lengths and sizes do not fit",
    "torch.nn.functional.ctc_loss": "reads past the end when lengths and sizes do not fit",
    "torch.lu_unpack": "reads past the end when pivots and sizes do not fit",
    "torch.batch_norm_gather_stats": "for a GPU only",
}
"""Callables that torch lets crash on arguments that do not fit; they get the samples only, and why."""


def pool(form: Form, calls: Sequence[Values]) -> Pool:
    """What each argument without tensors was given in these calls, with its default and what its kind suggests."""
    out: Pool = {}
    for param in form.params:
        if param.name in FIXED or param.kind in (Kind.TENSOR, Kind.TENSORS):
            continue
        values = [default_of(param)] if param.default is not None else []
        values += [c[param.name] for c in calls if param.name in c and plain(c[param.name])]
        values += _usual(param)
        unique: dict[str, Any] = {f"{type(v).__name__}:{v!r}": v for v in values}
        kept = list(unique.values())
        if len(kept) > A_POOL:
            kept = [kept[int(i * len(kept) / A_POOL)] for i in range(A_POOL)]
        out[param.name] = kept
    return out


def plain(value: Any) -> bool:
    """No tensor, and nothing that a tensor hides in."""
    if isinstance(value, (list, tuple)):
        return all(plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str, torch.dtype))


def _usual(param: Param) -> list[Any]:
    if param.kind is Kind.BOOL:
        return [True, False]
    if param.name == "reduction" and param.kind is Kind.STR:
        return ["none", "mean", "sum"]
    if param.name == "approximate":
        return ["none", "tanh"]
    if param.name in ("exponent", "ord", "p") and param.kind is Kind.NUMBER:
        return [0, 1, 2, 3.5, -1, float("inf")]
    if param.name == "p" and param.kind is Kind.FLOAT:
        return [0.0, 1.0, 2.0]
    if param.kind is Kind.FLOAT or (param.kind is Kind.NUMBER and param.default is not None):
        return [0.0, 1.0, 0.5]
    return []


def one_at_a_time(form: Form, values: Values, seen: Pool, *, shapes: bool = True) -> Iterator[Values]:
    """The call with one argument changed."""
    for param in form.params:
        if param.name in FIXED:
            continue
        if param.name in values and param.default is not None:
            yield {k: v for k, v in values.items() if k != param.name}
        given = values.get(param.name, default_of(param) if param.default is not None else None)
        for other in [*seen.get(param.name, ()), *_sizes(param, given, values)]:
            if param.name not in values or not _equal(other, values[param.name]):
                yield {**values, param.name: other}
    if shapes:
        yield from _tensors(values)


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and plain(a) and plain(b) and bool(a == b)


def _sizes(param: Param, given: Any, values: Values) -> list[Any]:
    """Numbers next to a given one, and sizes next to those of the first tensor."""
    if param.kind is Kind.INT and isinstance(given, int) and not isinstance(given, bool):
        return [given - 1, given + 1]
    if param.kind is Kind.INTS and given is not None and plain(given) and isinstance(given, (list, tuple)):
        return [[n + step for n in given] for step in (-1, 1) if all(isinstance(n, int) for n in given)]
    if given is None and param.kind in (Kind.INT, Kind.INTS):
        first = next((v for v in values.values() if isinstance(v, torch.Tensor) and v.ndim), None)
        if first is None:
            return []
        if param.kind is Kind.INT:
            return [first.shape[-1] + step for step in (-1, 0, 1)]
        return [[n + step for n in first.shape[-2:]] for step in (-1, 0, 1)]
    return []


def _tensors(values: Values) -> Iterator[Values]:
    roles = [n for n, v in values.items() if any(True for _ in tensors_in(v))]
    floating = [n for n in roles if any(t.is_floating_point() for t in tensors_in(values[n]))]
    if floating:
        yield {n: _cast(v, torch.complex64) if n in floating else v for n, v in values.items()}
        yield {n: _cast(v, torch.float64) if n in floating else v for n, v in values.items()}
    for name in floating if len(floating) > 1 else ():
        yield {**values, name: _cast(values[name], torch.float64)}
    for name in roles:
        value = values[name]
        if any(t.ndim > 1 and t.layout == torch.strided for t in tensors_in(value)):
            yield {**values, name: replace_tensors(value, noncontiguous)}
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            continue
        for dim in range(value.ndim):
            if value.shape[dim] > 1:
                yield {**values, name: value.narrow(dim, 0, 1).clone()}
        if value.ndim:
            yield {**values, name: value[0].clone()}
        yield {**values, name: value.expand(2, *value.shape).clone()}


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return replace_tensors(value, lambda t: t.to(dtype) if t.is_floating_point() else t)


def noncontiguous(value: torch.Tensor) -> torch.Tensor:
    """A copy laid out in memory with first and last dimension exchanged, where there are two."""
    if value.ndim >= 2 and value.layout == torch.strided:
        return value.detach().transpose(0, -1).contiguous().transpose(0, -1)
    return value


DTYPES = (
    torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip


def recast(values: Values, dtype: torch.dtype) -> Values:
    """The same arguments with the first tensor in another dtype."""
    first = next((n for n, v in values.items() if isinstance(v, torch.Tensor)), None)
    return {n: v.to(dtype) if n == first else v for n, v in values.items()}


def crossed(
    form: Form,
    names: Sequence[str],
    values: Values,
    seen: Mapping[str, Sequence[Any]],
    chooser: random.Random,
) -> Iterator[Values]:
    """Combinations of what the named arguments may be, at most `CROSSED` of them, every other with a tensor changed.

    A name such as `input.kind` or `input.contiguous` stands for the tensor that is changed so.
    """
    choices: list[list[tuple[str, Any]]] = []
    params = {p.name: p for p in form.params}
    for name in names:
        head, _, fact = name.rpartition(".")
        if fact in ("kind", "contiguous") and isinstance(values.get(head), torch.Tensor):
            choices.append([(name, False), (name, True)])
        elif name in params:
            param = params[name]
            given = values.get(name, default_of(param) if param.default is not None else None)
            options = [*seen.get(name, ()), *_sizes(param, given, values)]
            choices.append([(name, given), *((name, o) for o in options if not _equal(o, given))])
    combinations = list(itertools.product(*choices))[1:]
    chooser.shuffle(combinations)
    for turn, combination in enumerate(combinations[:CROSSED]):
        made = _changed(values, combination)
        others = list(_tensors(made)) if turn % 2 else []
        yield chooser.choice(others) if others else made


def _changed(values: Values, combination: Sequence[tuple[str, Any]]) -> Values:
    made = dict(values)
    for name, value in combination:
        head, _, fact = name.rpartition(".")
        if fact == "kind":
            if value and can_require_grad(made[head]):
                made[head] = made[head].to(torch.complex64)
        elif fact == "contiguous":
            if value:
                made[head] = noncontiguous(made[head])
        elif value is None and name not in values:
            continue
        else:
            made[name] = value
    return made
