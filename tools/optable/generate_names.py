"""The public names of torch that get a row, with the callable behind each.

A name qualifies when torch says that it works on tensors: it is bound from the native functions, it can be
overridden by tensor-like classes (`torch.overrides`), or it is an operator of `Tensor`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import overrides

Function = Callable[..., Any]

NAMESPACES: tuple[tuple[str, Any], ...] = (
    ("torch", torch),
    ("torch.nn.functional", torch.nn.functional),
    ("torch.linalg", torch.linalg),
    ("torch.special", torch.special),
    ("torch.fft", torch.fft),
    ("torch.nn.init", torch.nn.init),
)

_NOT_OPS = frozenset(
    [
        "__class__",
        "__delattr__",
        "__dir__",
        "__doc__",
        "__format__",
        "__getattribute__",
        "__getstate__",
        "__hash__",
        "__init__",
        "__init_subclass__",
        "__new__",
        "__reduce__",
        "__reduce_ex__",
        "__setattr__",
        "__setstate__",
        "__sizeof__",
        "__str__",
        "__subclasshook__",
        "__torch_dispatch__",
        "__torch_function__",
        "__dict__",
        "__module__",
        "__weakref__",
        "__annotations__",
        "__array_priority__",
        "__cuda_array_interface__",
        "__dlpack_c_exchange_api__",
        "__dlpack__",
        "__dlpack_device__",
        "__deepcopy__",
        "__repr__",
    ]
)

LEFT_OUT = {
    "torch.native_batch_norm": "crashes on samples of the test suite; `torch.batch_norm` is the one to call",
    "Tensor.index": "bound by accident of code generation; not documented",
    "Tensor.slice_inverse": "used by functionalization only",
    "torch.slice_inverse": "used by functionalization only",
    "torch.lobpcg": "an iteration of minutes on the samples of the test suite",
    "Tensor.reinforce": "removed from torch; raises",
    "Tensor.eig": "removed from torch; raises",
    "Tensor.lstsq": "removed from torch; raises",
    "Tensor.solve": "removed from torch; raises",
    "Tensor.symeig": "removed from torch; raises",
}
"""Public names that get no row, and why."""

OPERATORS = {
    **{
        name: f"__{name}__"
        for name in [
            "abs",
            "add",
            "and_",
            "eq",
            "floordiv",
            "ge",
            "gt",
            "iadd",
            "iand",
            "ifloordiv",
            "ilshift",
            "imod",
            "imul",
            "invert",
            "ior",
            "ipow",
            "irshift",
            "isub",
            "itruediv",
            "ixor",
            "le",
            "lshift",
            "lt",
            "matmul",
            "mod",
            "mul",
            "ne",
            "neg",
            "or_",
            "pos",
            "pow",
            "rshift",
            "sub",
            "truediv",
            "xor",
            "getitem",
            "setitem",
            "contains",
            "index",
        ]
    },
    "and_": "__and__",
    "or_": "__or__",
    "not_": "__bool__",
    "truth": "__bool__",
}
"""Functions of the module `operator` and the method each calls."""


def public_callables() -> dict[str, Function]:
    """Every qualifying name with its callable."""
    names: dict[str, Function] = {}
    overridable = {id(f) for fs in overrides.get_overridable_functions().values() for f in fs}
    native = set(dir(torch._C._VariableFunctions))
    for prefix, namespace in NAMESPACES:
        for name in sorted(dir(namespace)):
            value = getattr(namespace, name)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            qualifies = id(value) in overridable or (prefix == "torch" and name in native)
            if not qualifies and prefix == "torch":
                continue
            if prefix == "torch.nn.init" and (not name.endswith("_") or value.__module__ != "torch.nn.init"):
                continue
            if prefix == "torch.nn.functional" and getattr(value, "__module__", "").startswith(
                ("torch.overrides", "typing", "torch._jit_internal")
            ):
                continue
            names[f"{prefix}.{name}"] = value
    for name in sorted(dir(torch.Tensor)):
        value = getattr(torch.Tensor, name)
        if name in _NOT_OPS or (name.startswith("_") and not name.startswith("__")):
            continue
        if callable(value) and not isinstance(value, type):
            names[f"Tensor.{name}"] = value
    for name, method in OPERATORS.items():
        if hasattr(torch.Tensor, method):
            names[f"operator.{name}"] = getattr(operator, name)
    for name in ("matmul", "imatmul"):
        if hasattr(torch.Tensor, f"__{name}__"):
            names[f"operator.{name}"] = getattr(operator, name)
    return {name: function for name, function in names.items() if name not in LEFT_OUT}


def properties() -> dict[str, Function]:
    """Attributes of a tensor that give a tensor, with a function that reads each (`Tensor.T`, `Tensor.grad`)."""
    probe = torch.rand(2, 2)
    found: dict[str, Function] = {}
    for name in sorted(dir(torch.Tensor)):
        if name.startswith("_"):
            continue
        descriptor = getattr(torch.Tensor, name)
        if callable(descriptor):
            continue
        for value in (probe, probe.to(torch.complex64)):
            try:
                if isinstance(getattr(value, name), torch.Tensor):
                    found[f"Tensor.{name}"] = operator.attrgetter(name)
                    break
            except (RuntimeError, AttributeError, NotImplementedError):
                continue
    return found
