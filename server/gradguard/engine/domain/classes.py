"""Classes: lookup order, inheritance, what an object sees of its class."""

from __future__ import annotations

import functools

from gradguard.engine.domain.values import ClassV, External, FunctionV, Instance, Method, TorchName, Value


def guards(cls: Value, name: str) -> bool:
    """Whether `object.name = value` runs code of the object's class, or is refused by it."""
    if not isinstance(cls, ClassV):
        return False
    if any(isinstance(one, ClassV) and one.frozen for one in linear(cls)):
        return True
    found = class_lookup(cls, name)
    describes = isinstance(found, Instance) and class_lookup(found.cls, "__set__") is not None
    return describes or _property(cls, name) or class_lookup(cls, "__setattr__") is not None


def bind(receiver: Value, found: Value) -> Value:
    """A class attribute as seen through an object."""
    if isinstance(found, FunctionV):
        if found.kind == "staticmethod":
            return found
        if found.kind == "classmethod":
            return Method(receiver.cls if isinstance(receiver, Instance) else receiver, found)
        return Method(receiver, found)
    return found


def class_lookup(cls: Value, name: str) -> Value:
    """Attribute of a workspace class or of its workspace bases; None if none of them defines it."""
    if not isinstance(cls, ClassV):
        return None
    for owner in linear(cls):
        if isinstance(owner, ClassV) and name in owner.attributes:
            return owner.attributes[name]
    return None


def linear(cls: Value) -> tuple[Value, ...]:
    """The class and its bases in lookup order: depth first, the last of duplicates kept, which is Python's order but for
    hierarchies that Python refuses or orders otherwise only in rare diamonds."""
    if not isinstance(cls, ClassV):
        return (cls,)
    if cls.order is None:
        cls.order = (cls,)  # Ends the recursion of a class that is its own base.
        cls.order = _merged(cls)
    return cls.order


def _merged(cls: ClassV) -> tuple[Value, ...]:
    order = [cls, *(one for base in cls.bases for one in linear(base))]
    seen: set[object] = set()
    kept: list[Value] = []
    for one in reversed(order):
        mark: object = one if isinstance(one, (TorchName, External)) else id(one)
        if mark not in seen:
            seen.add(mark)
            kept.append(one)
    kept.reverse()
    # The classes that are cut off may define any attribute, like an unknown base.
    return tuple(kept) if len(kept) <= MAX_BASES else (*kept[:MAX_BASES], None)


MAX_BASES = 128
"""The number of classes in a lookup order; further ones are cut off."""


def is_subclass(cls: Value, path: str) -> bool:
    """Whether a class derives from a torch or library class of that path (or its last name)."""
    for one in linear(cls):
        if isinstance(one, (TorchName, External)):
            derives = _derives(one.path, path, isinstance(one, TorchName))
            if derives is not None:
                return derives
    return False


@functools.lru_cache(maxsize=4096)
def _derives(one: str, path: str, torchs: bool) -> bool | None:
    """Whether a library's class derives from another; None if this base does not decide it."""
    home, _, last = path.rpartition(".")
    if one == path or (one.startswith(home) and one.endswith("." + last)):
        return True
    if path == "torch.nn.Module" and torchs and one.startswith("torch.nn."):
        return True
    if path == "torch.nn.Module" and one.endswith(("LightningModule", "PreTrainedModel", ".Module")):
        return True
    if path == "torch.optim.Optimizer" and torchs and one.startswith("torch.optim."):
        return not one.startswith("torch.optim.lr_scheduler")
    if path == "builtins.Exception" and one.endswith(("Exception", "Error")):
        return True
    return None


def is_named_tuple(cls: ClassV) -> bool:
    """A `typing.NamedTuple` class."""
    return any(getattr(base, "path", "").endswith("NamedTuple") for base in cls.bases)


_HOLDS = {
    "builtins.dict": "dict", "collections.OrderedDict": "dict", "collections.UserDict": "dict", "collections.defaultdict": "dict",
    "typing.Dict": "dict", "builtins.list": "list", "collections.UserList": "list", "typing.List": "list", "collections.deque": "list",
}  # fmt: skip


def holds(cls: Value) -> str:
    """`dict` or `list` where the objects of a class of the program are dictionaries or lists, else empty."""
    return next(
        (_HOLDS[one.path] for one in linear(cls) if isinstance(one, External) and one.path in _HOLDS), ""
    )


def all_fields(cls: ClassV) -> list[tuple[str, Value]]:
    """Dataclass fields, inherited ones first."""
    fields: dict[str, Value] = {}
    for one in reversed(list(linear(cls))):
        if isinstance(one, ClassV):
            fields.update(one.fields)
    return list(fields.items())


def callable_instance(value: Value) -> bool:
    """An object whose workspace class defines `__call__`."""
    return isinstance(value, Instance) and class_lookup(value.cls, "__call__") is not None


def _property(cls: Value, name: str) -> bool:
    found = class_lookup(cls, name)
    return isinstance(found, FunctionV) and found.kind == "property"


def kind_of(instance: Instance) -> str:
    """Which of torch's base classes an object has: `Module`, `Optimizer`, `Function`, or `object`."""
    cls = instance.cls
    if not isinstance(cls, ClassV):
        path = getattr(cls, "path", "")
        return _kind_of_library(path, isinstance(cls, TorchName)) if path else _kind(cls)
    if not cls.kind:
        cls.kind = _kind(cls)
    return cls.kind


@functools.lru_cache(maxsize=1024)
def _kind_of_library(path: str, torchs: bool) -> str:
    return _kind(TorchName(path) if torchs else External(path))


def _kind(cls: Value) -> str:
    if is_subclass(cls, "torch.nn.Module"):
        return "Module"
    if is_subclass(cls, "torch.optim.Optimizer"):
        return "Optimizer"
    for one in linear(cls):
        if isinstance(one, TorchName):
            return one.path.rpartition(".")[2]
    return "object"


def canonical_class(path: str) -> str:
    """`torch.nn.modules.linear.Linear` is `torch.nn.Linear`."""
    if path.startswith("torch.nn.modules."):
        return "torch.nn." + path.rpartition(".")[2]
    return path
