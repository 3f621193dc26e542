"""An unknown value is refined to a tensor, a literal to a constant."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from gradguard.engine.domain.keys import HOST, LOADER, last, of_setting, root
from gradguard.engine.domain.tensors import UNKNOWN_SOURCE, Place, Tensor
from gradguard.engine.domain.values import Sym, Value
from gradguard.engine.state.run import Run


def is_number(value: Value) -> bool:
    """A Python number (booleans included), as torch's argument parser sees it."""
    return isinstance(value, (int, float, complex))


@lru_cache(maxsize=2048)
def constant(text: str) -> Value:
    """Value of a Python literal; the text itself where it is none (`torch.float32`)."""
    try:
        value: Value = ast.literal_eval(text)
        return value
    except (ValueError, SyntaxError):
        return text


def as_tensor(run: Run, value: Sym, place: Place | None = None) -> Tensor:
    """The tensor that an unknown value must be, the same each time it is asked.

    It is not sure: the value only stood where a tensor must stand. What comes out of a data loader does not
    require grad; about anything else nothing is known.
    """
    if value.tensor is None:
        tensor = run.tensor(place or run.here())
        tensor.requires_grad = False if value.data else None
        tensor.leaf = True if value.data else None
        given = run.arguments_likely and not value.data and not of_setting(value.key)
        tensor.likely = given and not value.graphless and _TABLE.search(value.text) is None
        tensor.inference = False
        tensor.contiguous = None
        if value.data and root(value.key)[0] != LOADER:
            tensor.cuts = frozenset({UNKNOWN_SOURCE})
        tensor.memory.outside = True
        tensor.source = "data" if value.data else "argument"
        tensor.bound_name = value.text
        tensor.sure = value.kind == "tensor"
        tensor.device = "cpu" if on_host(value) else None
        if value.kind == "bool":
            tensor.dtype, tensor.requires_grad, tensor.leaf = "bool", False, True
        value.tensor = tensor
        value.kind = "tensor"
    return value.tensor


_TABLE = re.compile(r"(^|_)(masks?|ids|indices|labels?|rotary|rope|freqs|cos|sin)(_|$)|^position_embeddings$")
"""Names of arguments that say which numbers count, and where they stand: no network computes them."""


def are_sizes(value: Sym) -> bool:
    """Whether this is a shape or a slice of a shape, so that its items are integers."""
    parts = last(value.key)
    return (
        root(value.key)[0] == "shape" or parts[-2:] == ("attr", "shape") or parts[-3:-1] == ("method", "size")
    )


def on_host(*values: Value) -> tuple[str, ...]:
    """The beginning of the key of a value computed from these: `HOST` if one of them lies on the CPU to stay."""
    return (HOST,) if any(isinstance(value, Sym) and root(value.key)[0] == HOST for value in values) else ()


def number(value: Value) -> None:
    """Note that a value was used as a size or a bound: an unknown value is a number from here on."""
    if isinstance(value, Sym) and value.kind == "any" and value.tensor is None:
        value.kind = "number"
