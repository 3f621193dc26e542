"""Tokens that stand for the keys of dictionaries and for tuples: equal for what is known to be equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from gradguard.engine.domain.keys import Itself, Key
from gradguard.engine.domain.values import Sym, TupleV, Value


def token(key: Value) -> Hashable:
    """The token that stands for a key of a dictionary: equal for keys known to be equal."""
    if key is None or isinstance(key, (bool, int, float, str, bytes)):
        return key
    if isinstance(key, Sym):
        return key.key
    if isinstance(key, TupleV):
        return of_tuple(key, token)
    return Itself(key)


MAX_KEYED = 256
"""Parts of the largest tuple with a structural key; two larger tuples are never known to be equal."""
MAX_KEYED_DEPTH = 16


def of_tuple(value: TupleV, of_part: Callable[[Value], Hashable]) -> Hashable:
    """The key of a tuple, made of the keys of its parts; a large tuple has a key of its own."""
    room = MAX_KEYED

    def key(one: TupleV, depth: int) -> Key | None:
        nonlocal room
        room -= 1 + len(one.items)
        if room < 0 or depth > MAX_KEYED_DEPTH:
            return None
        parts: list[object] = ["tuple"]
        for item in one.items:
            part = key(item, depth + 1) if type(item) is TupleV else of_part(item)
            if part is None and type(item) is TupleV:
                return None
            parts.append(part)
        return Key(*parts)

    return key(value, 0) or Itself(value)
