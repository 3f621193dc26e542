"""The truth of a condition where it is known, and the structural key under which its answer is remembered."""

from __future__ import annotations

from collections.abc import Hashable

from gradguard.engine.domain.keys import Itself
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.tokens import of_tuple
from gradguard.engine.domain.values import ArrayV, DictV, External, ListV, Sym, TupleV, Value


def asks(value: Value) -> bool:
    """Whether a condition is the truth of a tensor's value, which the path has to decide."""
    return isinstance(value, Tensor) or (isinstance(value, Sym) and value.asked is not None)


def key_of(value: Value) -> Hashable:
    """A key that is equal for values known to be equal."""
    if isinstance(value, Sym):
        return value.key
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, Tensor):
        return ("t", value.number, value.counter.value)
    if isinstance(value, TupleV):
        return of_tuple(value, key_of)
    return Itself(value)


def known_truth(value: Value) -> bool | None:
    """The truth of a value without a branch decision; None if unknown."""
    if isinstance(value, External) and value.path in (
        "typing.TYPE_CHECKING",
        "typing_extensions.TYPE_CHECKING",
    ):
        return False
    if isinstance(value, (Sym, Tensor, ArrayV)):
        return None
    if isinstance(value, ListV):
        return True if value.items else (None if value.open else False)
    if isinstance(value, TupleV):
        return bool(value.items)
    if isinstance(value, DictV):
        return True if value.items else (None if value.open else False)
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return bool(value)
    return True
