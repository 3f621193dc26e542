"""Structural keys of unknown values: equal where two values were made alike of the same parts.

A key is a tuple of constants, or a `Key` of several keys. A `Key` shares its parts with those it was made from, knows its
hash and its size, and is compared without looking at a shared part twice, so that

    a = a + a       sixty times over

costs sixty keys, and asking whether two of them are the same no more than that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

HOST = "host"
"""Begins the key of a value that was made on the CPU and never moved, and the keys of its parts."""

SETTING = "setting"
"""Begins the key of an argument of a constructor: by convention a setting, not the result of a network."""

SPELLED = 64
"""Parts up to which a key is written out."""


@dataclass(slots=True, frozen=True, repr=False)
class Itself:
    """The key of an object. It holds the object: Python gives the number of one that is gone to the next."""

    value: Hashable

    def __repr__(self) -> str:
        return f"<{id(self.value):x}>"


class Key:
    """A key that holds other keys."""

    __slots__ = ("_hash", "parts", "root", "setting", "size")

    size: int
    """Parts, its parts' parts too, as far as it is counted."""
    setting: bool
    """It was made of a setting, among others."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts
        self._hash = hash(parts)
        first = parts[0]
        self.root: tuple[object, ...] = (
            first.root if type(first) is Key else first if type(first) is tuple else parts
        )
        """The innermost of its first parts: `x.index` has the root of `x`."""
        size = len(parts)
        setting = False
        for part in parts:
            if type(part) is Key:
                size += part.size
                setting = setting or part.setting
            elif type(part) is tuple:
                size += len(part)
                setting = setting or of_setting(part)
            else:
                setting = setting or part == SETTING
        self.size = min(size, SPELLED + 1)
        self.setting = setting

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Key and self._hash == other._hash and _same(self, other))

    def __repr__(self) -> str:
        return repr(self.parts) if self.size <= SPELLED else f"<{self._hash:x}>"


Structure = Key | tuple[object, ...]
"""The key of an unknown value."""


def _same(one: Key, other: Key) -> bool:
    """Whether two keys with the same hash are equal. Equal keys share their parts from then on."""
    pairs = [(one, other)]
    done: set[tuple[int, int]] = set()
    for mine, theirs in pairs:
        if mine is theirs or mine.parts is theirs.parts or (id(mine), id(theirs)) in done:
            continue
        done.add((id(mine), id(theirs)))
        if mine._hash != theirs._hash or len(mine.parts) != len(theirs.parts):
            return False
        for part, its in zip(mine.parts, theirs.parts):
            if type(part) is Key and type(its) is Key:
                pairs.append((part, its))
            elif part is not its and part != its:
                return False
    for mine, theirs in pairs:
        theirs.parts = mine.parts
    return True


LOADER = "loader"
"""Begins the key of what a `DataLoader` gave, which does not require grad."""


def root(key: Structure) -> tuple[object, ...]:
    """The parts that a key begins with, however much was added behind them."""
    return key.root if type(key) is Key else key  # type: ignore[return-value]


def last(key: Structure) -> tuple[object, ...]:
    """The parts of the key itself, without the parts of its parts."""
    return key.parts if isinstance(key, Key) else key


def of_setting(key: object) -> bool:
    """Whether a value was made of a setting, among others."""
    if type(key) is Key:
        return key.setting
    if type(key) is not tuple:
        return False
    for part in key:
        if (type(part) is Key and part.setting) or (type(part) is tuple and of_setting(part)):
            return True
    return SETTING in key


def negated(key: Hashable) -> Hashable | None:
    """The key that this key negates; None if it is no negation."""
    parts = key.parts if type(key) is Key else key
    return parts[1] if type(parts) is tuple and len(parts) == 2 and parts[0] == "not" else None
