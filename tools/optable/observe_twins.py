"""An in-place callable next to its out-of-place twin: whether the twin refuses arguments that it takes itself.

Samples are arguments that both take. What only one of them refuses are numbers that do not fit each other, such as
bounds in the wrong order, so all numbers of a call are exchanged together.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradguard.ops.model import Form, Kind
from tools.optable.observe import fresh

BASES = 3
"""Calls whose numbers are exchanged."""
MOST_NUMBERS = 3
VALUES = (-1.0, 0.0, 1.0)

Values = dict[str, Any]


def lenient(
    function: Callable[..., Any], twin: Callable[..., Any], form: Form, calls: Sequence[Values]
) -> bool:
    """Whether the in-place function takes arguments that the twin refuses by their values."""
    numbers = [p.name for p in form.params if p.kind in (Kind.NUMBER, Kind.FLOAT) and not p.keyword_only]
    return any(
        _runs(function, form, values) is None
        and isinstance(_runs(twin, form, values), (ValueError, RuntimeError))
        for values in _exchanged(numbers, calls[:BASES])
    )


def _exchanged(numbers: Sequence[str], calls: Sequence[Values]) -> Iterator[Values]:
    if not 1 < len(numbers) <= MOST_NUMBERS:
        return
    for base in calls:
        for chosen in itertools.product(VALUES, repeat=len(numbers)):
            yield {**base, **dict(zip(numbers, chosen))}


def _runs(function: Callable[..., Any], form: Form, values: Values) -> Exception | None:
    """What the call raised. Arguments go by position, as the twins may call them differently."""
    given = [p for p in form.params if p.name in values]
    positional = [fresh(values[p.name], grad=False) for p in given if not p.keyword_only]
    named = {p.name: values[p.name] for p in given if p.keyword_only}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*positional, **named)
        except Exception as error:  # whatever a callable raises, it refuses
            return error
    return None
