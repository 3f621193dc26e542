"""Finds, for a row, a simple call that torch accepts and records, for its page.

Two sources are tried in turn: the few variables of `examples.PRELUDE` in every place, then the samples that the row was
learnt from, their tensors replaced by ones that are easy to write. The call whose page has an example of both a safe
write and one that makes backward raise is preferred; each must do so under torch.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from gradguard.ops.examples import PRELUDE, examples, untouched
from gradguard.ops.model import Call, Form, Kind, ModuleRow, Op
from tools.optable import observe_extra, observe_modules, observe_samples
from tools.optable.observe import tensors_in
from tools.optable.observe_bind import bind
from tools.optable.observe_vary import plain

_TENSORS = (
    "x",
    "y",
    "z",
    "v",
    "w",
    "image",
    "batch",
    "batch2",
    "signal",
    "kernel",
    "grid",
    "volume",
    "i",
    "j",
    "m",
    "sign",
    "c",
)
_OTHERS: dict[Kind, tuple[str, ...]] = {
    Kind.NUMBER: ("2", "0.5"),
    Kind.INT: ("0", "1", "2", "3"),
    Kind.INTS: ("[0]", "[9]", "[3]", "[3, 3]", "[1]", "[0, 1]", "[2]", "[2, 2]", "[2, 2, 2]", "2"),
    Kind.BOOL: ("True", "False"),
    Kind.FLOAT: ("0.5", "2.0"),
    Kind.STR: ("'mean'", "'sum'", "'amax'"),
    Kind.TENSORS: ("[x, y]", "[i]"),
    Kind.SLICES: ("0",),
    Kind.MASK: ("m",),
    Kind.ANY: ("2", "3", "(3,)", "(2, 2)", "[0]", "i"),
}
TRIES = 250
FURTHER = 12
"""Calls that are tried for a second example once one has been found."""
FEW_TENSORS = 6
SMALL = 130
"""Elements of the largest tensor of a sample that becomes an example."""
LOSSES = ("result.sum()", "result.real.sum()")


def op_example(op: Op, *, attribute: bool) -> Call | None:
    """The call for the page; None when no simple call is recorded. An `attribute` is read, not called."""
    recording = [i for i, f in enumerate(op.forms) if f.nodes]
    simple = (
        Call(arguments, form=i)
        for i in recording
        for arguments in itertools.islice(_arguments(op.forms[i]), TRIES // len(recording))
    )
    if attribute:
        return _best(op, (Call((name,), attribute=True) for name in _TENSORS))
    return _best(op, itertools.chain(simple, _of_samples(op)))


def module_example(row: ModuleRow) -> Call | None:
    """The call for the page; None when no simple one works."""
    if not row.forms or not row.forms[0].nodes:
        return None
    return _best(row, itertools.chain(itertools.islice(_simple_builds(row), TRIES), _of_builds(row)))


def _best(row: Op | ModuleRow, calls: Iterable[Call]) -> Call | None:
    """The first call whose page has both examples, else the first that has any."""
    best: Call | None = None
    found = 0
    bare: Call | None = None
    further = FURTHER
    for call in calls:
        for loss in LOSSES:
            now = replace(call, loss=loss)
            told = examples(replace(row, example=now))
            if not told and bare is None and not runs(untouched(row, now)):
                bare = now
            if len(told) > found and holds(replace(row, example=now)):
                best, found = now, len(told)
                break
        saves = bool(row.forms[call.form].saves)
        further -= best is not None
        if found == 2 or (found and not saves) or further < 0:
            break
    return best or bare


def holds(row: Op | ModuleRow) -> bool:
    """Whether torch does what the examples of the row say."""
    return all(runs(e.code) == (BROKEN if e.raises else "") for e in examples(row))


def _arguments(form: Form) -> Iterator[tuple[str, ...]]:
    required = [p for p in form.params if p.default is None and not p.keyword_only]
    if any(p.default is None and p.keyword_only for p in form.params) or len(required) > 5:
        return
    tensors = sum(p.kind is Kind.TENSOR for p in required)
    names = _TENSORS if tensors < 3 else _TENSORS[:FEW_TENSORS]
    choices = [names if p.kind is Kind.TENSOR else _OTHERS.get(p.kind, ("None",)) for p in required]
    # Calls whose tensors come early in the list are simpler.
    yield from sorted(itertools.product(*choices), key=lambda c: (_cost(c), c))


def _cost(arguments: tuple[str, ...]) -> int:
    tensors = [a for a in arguments if a in PRELUDE]
    return sum(_TENSORS.index(t) for t in tensors) + 20 * (len(tensors) - len(set(tensors)))


def _simple_builds(row: ModuleRow) -> Iterator[Call]:
    required = [p for p in row.init if p.default is None and not p.variadic]
    if len(required) > 4:
        return
    calls = list(itertools.islice(_arguments(row.forms[0]), 60))
    for build in itertools.product(*[("3", "2", "(2, 2)", "4")] * len(required)):
        for arguments in calls:
            yield Call(arguments, build=build)


# --- from samples --------------------------------------------------------------------------------------------------


def _of_samples(op: Op) -> Iterator[Call]:
    observe_samples.seed(0)
    pairs = [*observe_extra.samples(op.name), *observe_samples.samples(op.name, 12)]
    for args, kwargs in sorted(pairs, key=_size):
        for index, form in enumerate(op.forms):
            values = bind(form, args, kwargs, strict=len(op.forms) > 1)
            if form.nodes and values is not None:
                grads = {id(t) for n in form.differentiable for t in tensors_in(values.get(n))}
                for arguments in _texts(args, kwargs, grads):
                    yield Call(arguments, form=index)
                break


def _of_builds(row: ModuleRow) -> Iterator[Call]:
    cls = observe_modules.classes()[row.name]
    for build in sorted(observe_modules.builds(cls, row.init), key=lambda b: _size((b.inputs, b.init))):
        given = [text for n, v in build.init.items() for text in (_literal(v),) if text is not None]
        if len(given) < len(build.init) or not build.training:
            continue
        made = tuple(f"{n}={text}" for n, text in zip(build.init, given))
        grads = {id(t) for t in tensors_in([*build.inputs, *build.named_inputs.values()])}
        for arguments in _texts(build.inputs, build.named_inputs, grads):
            yield Call(arguments, build=made)


def _size(sample: Any) -> int:
    return sum(t.numel() for t in tensors_in(list(sample)))


def _texts(args: Iterable[Any], kwargs: dict[str, Any], grads: set[int]) -> Iterator[tuple[str, ...]]:
    """The arguments as text, with tensors that are drawn, and with positive definite ones; some require grad."""
    values = [("", a) for a in args] + list(kwargs.items())
    for positive in (False, True):
        texts = [_text(value, positive, grads) for _, value in values]
        if all(text is not None for text in texts):
            yield tuple(f"{n}={text}" if n else str(text) for (n, _), text in zip(values, texts))


def _text(value: Any, positive: bool, grads: set[int]) -> str | None:
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, torch.Tensor) for v in value):
        parts = [_tensor(v, positive, grads) for v in value]
        return f"[{', '.join(p for p in parts if p)}]" if all(parts) else None
    return _tensor(value, positive, grads) if isinstance(value, torch.Tensor) else _literal(value)


def _literal(value: Any) -> str | None:
    if isinstance(value, torch.dtype):
        return str(value)
    if not plain(value) or (isinstance(value, float) and value != value):
        return None
    return repr(tuple(value) if isinstance(value, torch.Size) else value)


def _tensor(value: torch.Tensor, positive: bool, grads: set[int]) -> str | None:
    shape = tuple(value.shape)
    grad = id(value) in grads
    if value.numel() > SMALL or value.layout != torch.strided or value.is_quantized:
        return None
    if value.is_floating_point() or value.is_complex():
        size = ", ".join(map(str, shape)) or "()"
        if positive and len(shape) == 2 and shape[0] == shape[1]:
            return f"torch.eye({shape[0]}{', requires_grad=True' if grad else ''}) * 2"
        dtype = "" if value.dtype == torch.float32 else f", dtype={value.dtype}"
        return f"torch.rand({size}{dtype}{', requires_grad=True) * 1' if grad else ')'}"
    if value.numel() > 12:
        return f"torch.zeros({', '.join(map(str, shape))}, dtype={value.dtype})"
    dtype = "" if value.dtype in (torch.int64, torch.bool) else f", dtype={value.dtype}"
    return f"torch.tensor({value.tolist()!r}{dtype})"


# --- torch's word --------------------------------------------------------------------------------------------------

BROKEN = "modified by an inplace operation"
"""Torch's words for a broken version check."""


def runs(code: str) -> str:
    """Runs an example: empty when it ends well, else what it raised, cut to torch's words for a broken version check."""
    torch.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<example>", "exec"), {})
        except Exception as error:
            return BROKEN if BROKEN in str(error) else f"{type(error).__name__}: {error}"
    return ""
