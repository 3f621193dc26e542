"""How large a value of the program may become that the engine computes: beyond that it is unknown.

Numbers and texts go through `constant` where they stand in the program, and through `computed` where a function of Python
makes them of others, so that no program can have the engine build what does not fit into memory or takes minutes:

    s = s + s             sixty times over: a text that is not known
    n = 7 ** 10**9        a number that is not known
    str(n)                a text that is not known; Python itself refuses numbers of many digits

Lists, tuples and dictionaries that grow by more than an item at a time go through `cut`. What is cut off is not known,
and the report says that something was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, MutableMapping

from gradguard.engine.domain.values import Value
from gradguard.engine.state.run import Run

MAX_BITS = 4096
"""Of an integer; it has far fewer digits than Python refuses to write."""
MAX_TEXT = 10_000
"""Characters of a text, or bytes."""
MAX_ITEMS = 100_000
"""Items of a list, tuple or dictionary that grows; a display in the program is bounded by its text."""
CHARACTERS_A_UNIT = 64
"""Text that is copied as fast as a unit of work takes."""

CUT = "read in part: a container holds more than is followed"
NESTED = "read in part: a value is nested more deeply than is followed"


def constant(run: Run, value: Value) -> Value:
    """A number or text as it stands in the program."""
    if type(value) is str or type(value) is bytes:
        return value if len(value) <= MAX_TEXT else run.fresh("str" if type(value) is str else "any")
    if type(value) is int:
        return value if value.bit_length() <= MAX_BITS else run.fresh("int")
    return value


def computed(run: Run, function: Callable[..., Value], *given: Value, kind: str = "any") -> Value:
    """What a function of Python gives for plain values.

    Unknown where it would be too large, and where Python raises; then of that kind.
    """
    if _grows(function, given):
        return run.fresh(_kind(given))
    try:
        made = function(*given)
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        return run.fresh(kind)
    if isinstance(made, (str, bytes)):
        run.work(len(made) // CHARACTERS_A_UNIT)
    return constant(run, made)


def _kind(given: tuple[Value, ...]) -> str:
    """The kind of the unknown that stands for a number or text which grows too large."""
    if any(isinstance(value, str) for value in given):
        return "str"
    second = given[1]
    if not isinstance(second, int) or not isinstance(given[0], int):
        return "any"
    return "int" if second >= 0 else "number"


def _grows(function: Callable[..., Value], given: tuple[Value, ...]) -> bool:
    """Whether the result of an operator would be too large to compute at all."""
    if function not in _GROWING:
        return function is operator.mod and isinstance(given[0], bytes)
    left, right = given
    if function is operator.mul:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (str, bytes)):
                return isinstance(other, int) and len(one) * other > MAX_TEXT
        return False
    if not isinstance(left, int) or not isinstance(right, int):
        return False
    if function is operator.lshift:
        return right > MAX_BITS
    return abs(right) * max(left.bit_length() - 1, 0) > MAX_BITS


_GROWING = frozenset({operator.mul, operator.pow, operator.lshift})


def cut(run: Run, items: list[Value]) -> bool:
    """Cut a list to the items that are followed, with an unknown item for the rest; whether anything was cut."""
    run.work(len(items) // ITEMS_A_UNIT)
    if len(items) <= MAX_ITEMS:
        return False
    items[MAX_ITEMS - 1 :] = [run.fresh()]
    run.limits[CUT] = None
    return True


def cut_table(run: Run, items: MutableMapping[object, tuple[Value, Value]]) -> bool:
    """The same for the items of a dictionary."""
    run.work(len(items))
    if len(items) <= MAX_ITEMS:
        return False
    for key in list(items)[MAX_ITEMS - 1 :]:
        del items[key]
    rest = run.fresh()
    items[rest.key] = (rest, run.fresh())
    run.limits[CUT] = None
    return True


ITEMS_A_UNIT = 4
