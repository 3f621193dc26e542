"""Finds, for a row, the simplest call that torch accepts and records, for its page."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import replace

import torch

from gradguard.ops.model import Form, Kind, ModuleRow, Op
from gradguard.ops.render import PRELUDE, call_text, examples

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
TRIES = 400
FEW_TENSORS = 6


def op_example(op: Op) -> tuple[str, ...]:
    """Argument texts for the first form; empty when no simple call is recorded."""
    if not op.forms or not op.forms[0].nodes:
        return ()
    for arguments in itertools.islice(_arguments(op.forms[0]), TRIES):
        if _records(f"result = {call_text(op.name, arguments)}") and _proven(replace(op, example=arguments)):
            return arguments
    return ()


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


def module_example(row: ModuleRow) -> tuple[str, ...]:
    """Texts of the constructor's and the call's arguments; empty when no simple ones work."""
    if not row.forms or not row.forms[0].nodes:
        return ()
    required = [p for p in row.init if p.default is None and not p.variadic]
    builds = (
        itertools.product(*[("3", "2", "(2, 2)", "4")] * len(required)) if len(required) < 5 else iter(())
    )
    calls = list(itertools.islice(_arguments(row.forms[0]), 60))
    tries = 0
    for build in builds:
        for call in calls:
            tries += 1
            if tries > TRIES:
                return ()
            example = (", ".join(build), ", ".join(call))
            code = f"module = {row.name}({example[0]})\nresult = module({example[1]})"
            if _records(code) and _proven(replace(row, example=example)):
                return example
    return ()


def _records(code: str) -> bool:
    used = {n for n in PRELUDE if n in code}
    names: dict[str, object] = {"torch": torch}
    torch.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for name in used:
                names[name] = eval(PRELUDE[name], {"torch": torch})
            exec(code, names)
        except Exception:
            return False
    result = names.get("result")
    return isinstance(result, torch.Tensor) and result.grad_fn is not None and result.numel() > 0


def _proven(row: Op | ModuleRow) -> bool:
    """Whether the examples on the page of the row do what they say."""
    return all(
        runs(example.code) == ("modified by an inplace operation" if example.raises else "")
        for example in examples(row)
    )


def runs(code: str) -> str:
    """Runs an example: empty when it ends well, else what it raised, cut to torch's words for a broken version check."""
    torch.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<example>", "exec"), {})
        except Exception as error:
            broken = "modified by an inplace operation"
            return broken if broken in str(error) else f"{type(error).__name__}: {error}"
    return ""
