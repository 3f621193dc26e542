"""Real arguments against forms: which form takes them, and the call that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from gradguard.ops.model import Form, Kind, Param


def accepts(kind: Kind, value: Any) -> bool:
    """Whether torch's argument parser takes the value for a parameter of this kind."""
    if kind is Kind.TENSOR:
        return isinstance(value, torch.Tensor)
    if kind is Kind.TENSORS:
        return isinstance(value, (list, tuple)) and all(isinstance(v, torch.Tensor) for v in value)
    if kind is Kind.NUMBER:
        return isinstance(value, (int, float, complex)) or _is_scalar_tensor(value)
    if kind is Kind.INT:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is Kind.INTS:
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value)
        )
    if kind is Kind.BOOL:
        return isinstance(value, bool)
    if kind is Kind.FLOAT:
        return isinstance(value, (int, float))
    if kind is Kind.STR:
        return isinstance(value, str)
    if kind is Kind.DTYPE:
        return isinstance(value, torch.dtype)
    if kind is Kind.SLICES:
        parts = value if isinstance(value, tuple) else (value,)
        return all(p is None or p is Ellipsis or isinstance(p, (int, slice)) for p in parts)
    if kind is Kind.MASK:
        return isinstance(value, torch.Tensor) and value.dtype in (torch.bool, torch.uint8)
    return True


def _is_scalar_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 0 and not value.requires_grad


def bind(
    form: Form, args: Sequence[Any], kwargs: Mapping[str, Any], *, strict: bool = True
) -> dict[str, Any] | None:
    """The values by parameter name, or None when the form does not take these arguments.

    Unless `strict`, only their number and names count, as for a Python function.
    """
    bound: dict[str, Any] = {}
    rest = list(args)
    named = dict(kwargs)
    for param in form.params:
        if rest and not param.keyword_only:
            if param.variadic and not accepts(param.kind, rest[0]):
                bound[param.name], rest = rest, []
                if not accepts(param.kind, bound[param.name]):
                    return None
                continue
            if param.variadic and param.kind in (Kind.INTS, Kind.TENSORS, Kind.ANY) and len(rest) > 1:
                bound[param.name], rest = rest, []
            else:
                bound[param.name] = rest.pop(0)
        elif param.name in named:
            bound[param.name] = named.pop(param.name)
        elif param.default is None and not param.variadic:
            return None
        else:
            continue
        value = bound[param.name]
        if strict and not (value is None and param.optional) and not accepts(param.kind, value):
            return None
    return None if rest or named else bound


def caller(function: Callable[..., Any], form: Form) -> Callable[[Mapping[str, Any]], Any]:
    """A function of the values by parameter name that makes the call."""

    def call(values: Mapping[str, Any]) -> Any:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        gap = False
        for param in form.params:
            if param.name not in values:
                gap = True
                continue
            if param.variadic and param.kind is Kind.TENSORS:
                positional.extend(values[param.name])
            elif gap or param.keyword_only or (param.default is not None and not param.variadic):
                named[param.name] = values[param.name]
            else:
                positional.append(values[param.name])
        return function(*positional, **named)

    return call


def default_of(param: Param) -> Any:
    """The default as a value; raises nothing, gives the text when it is no literal."""
    import ast

    if param.default is None:
        return None
    try:
        return ast.literal_eval(param.default)
    except (SyntaxError, ValueError):
        return param.default
