"""Classes of `enum`: each name of the class is one object, which equals itself alone."""

from __future__ import annotations

from gradguard.engine.domain.classes import linear
from gradguard.engine.domain.values import ClassV, External, FunctionV, Instance, Value

_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_PLAIN = frozenset({"enum.IntEnum", "enum.StrEnum", "enum.IntFlag", "builtins.str", "builtins.int"})
"""Bases whose members compare as their values do."""


def is_enumeration(cls: Value) -> bool:
    """Whether a workspace class derives from one of `enum`'s."""
    return isinstance(cls, ClassV) and any(_path(base) in _ENUMS for base in linear(cls))


def make_members(cls: ClassV) -> None:
    """Turn the values in the body of an enumeration into its members."""
    for name, value in cls.attributes.items():
        if not name.startswith("_") and not isinstance(value, (FunctionV, ClassV)):
            cls.attributes[name] = Instance(cls, {"name": name, "value": value, "_value_": value})


def members(cls: ClassV) -> list[Value]:
    """Members in the order of the class body."""
    return [value for value in cls.attributes.values() if isinstance(value, Instance) and value.cls is cls]


def by_value(cls: ClassV, value: Value) -> Value:
    """The member that `cls(value)` looks up; None where that is not known."""
    for member in members(cls):
        assert isinstance(member, Instance)
        held = member.attributes["value"]
        if member is value or (type(held) is type(value) and isinstance(value, (str, int)) and held == value):
            return member
    return None


def is_member(value: Value) -> bool:
    """Whether a value is a member of an enumeration."""
    return isinstance(value, Instance) and is_enumeration(value.cls)


def compared(value: Value) -> Value:
    """What takes part in a comparison: the value of a member that is a number or text as well, else the object."""
    if isinstance(value, Instance) and is_member(value) and isinstance(value.cls, ClassV):
        if any(_path(base) in _PLAIN for base in linear(value.cls)):
            return value.attributes["value"]
    return value


def _path(base: Value) -> str:
    return base.path if isinstance(base, External) else ""
