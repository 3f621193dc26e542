"""What `isinstance` and class patterns answer."""

from __future__ import annotations

from gradguard.engine.domain import classes
from gradguard.engine.domain.classes import is_subclass, linear
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    ClassV,
    DictV,
    External,
    Instance,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
    contents,
    inside,
)


def instance_of(value: Value, cls: Value) -> bool | None:
    """`isinstance(value, cls)` where it can be told."""
    if isinstance(cls, TupleV):
        answers = [instance_of(value, one) for one in inside(cls)]
        return True if True in answers else (None if None in answers else False)
    path = getattr(cls, "path", "")
    if isinstance(value, Sym):
        if value.tensor is not None and value.kind == "tensor":
            return _used_as_tensor(path)
        return False if value.kind in _NO_TENSOR_KINDS and path in _TENSORS else None
    if isinstance(value, Tensor):
        if path.endswith("Parameter"):
            return value.parameter
        return _is_tensor(path) or (None if isinstance(cls, Sym) else False)
    if isinstance(cls, ClassV):
        return isinstance(value, Instance) and cls in linear(value.cls)
    if isinstance(value, Instance):
        if path == "torch.nn.Module":
            return is_subclass(value.cls, path)
        if isinstance(cls, (TorchName, External)) and classes.holds(value.cls):
            return _builtin_instance(contents(value), path)
        if isinstance(cls, TorchName):
            return any(
                getattr(one, "path", "").rpartition(".")[2] == path.rpartition(".")[2]
                for one in linear(value.cls)
            )
        return None if isinstance(cls, Sym) else False
    return _builtin_instance(value, path)


_TENSORS = ("torch.Tensor", "torch.nn.Parameter")

_NO_TENSOR_KINDS = frozenset({"int", "number", "bool", "str"})
"""Kinds of unknown values, as an annotation or an operation tells them."""


def _is_tensor(path: str) -> bool:
    return path == "torch.Tensor" or _short(path) in _TENSOR_HAS


def _used_as_tensor(path: str) -> bool | None:
    """For an unknown value that stood where a tensor must stand: whichever subclass it is, it is no number or list."""
    if _is_tensor(path):
        return True
    if path in _TENSORS or _short(path) in _NO_TENSOR:
        return False
    return None


_TENSOR_HAS = frozenset({"object", "Iterable", "Sized", "Hashable", "Collection", "Container", "Reversible"})
"""Classes besides its own that every tensor is an instance of."""

_NUMBERS = {"Number": (int, float, complex), "Complex": (int, float, complex), "Real": (int, float)}

_BUILTIN: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "str": (str,), "bool": (bool,), "bytes": (bytes,), "complex": (complex,),
    **_NUMBERS,
}  # fmt: skip

_NO_TENSOR = frozenset({
    *_BUILTIN, "list", "List", "set", "tuple", "Tuple", "dict", "Dict", "Mapping", "OrderedDict", "Sequence",
    "Callable", "Iterator", "Set", "ndarray",
})  # fmt: skip
"""Classes that no tensor is an instance of."""


def _short(path: str) -> str:
    return path.rpartition(".")[2]


def _builtin_instance(value: Value, path: str) -> bool | None:
    name = _short(path)
    if name in _BUILTIN:
        return isinstance(value, _BUILTIN[name])
    if name in ("list", "List", "set"):
        return isinstance(value, ListV) and (value.kind == "set") is (name == "set")
    if name in ("tuple", "Tuple"):
        return isinstance(value, TupleV)
    if name in ("dict", "Dict", "Mapping", "OrderedDict"):
        return isinstance(value, DictV)
    if name in ("Sequence", "Iterable", "Collection"):
        return isinstance(value, (ListV, TupleV, str)) or (name != "Sequence" and isinstance(value, DictV))
    if path.startswith("torch.") or name == "ndarray":
        return isinstance(value, ArrayV) if name == "ndarray" else False
    return None
