"""Variables of running frames, read without leaving copies behind; the code that a callable runs."""

from __future__ import annotations

import functools
import inspect
import sys
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

OPTIMIZED = 0x1


def locals_of(frame: FrameType, names: tuple[str, ...]) -> dict[str, Any]:
    """Some variables of a frame, without leaving a copy of the others behind.

    Before Python 3.13 reading `f_locals` fills a dictionary that lives as long as the frame; left alone it would
    keep every tensor in it alive.
    """
    values = frame.f_locals
    found = {name: values[name] for name in names if name in values}
    if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
        values.clear()
    return found


def argument_names(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


def first_argument(frame: FrameType) -> Any:
    code = frame.f_code
    if not code.co_argcount:
        return None
    return locals_of(frame, code.co_varnames[:1]).get(code.co_varnames[0])


def code_of(given: Any) -> CodeType | None:
    """The code that runs when something is called; None if it is not Python's."""
    while isinstance(given, functools.partial):
        given = given.func
    if not isinstance(given, (FunctionType, MethodType)):
        given = inspect.getattr_static(type(given), "__call__", None)
    code = getattr(inspect.unwrap(given), "__code__", None)
    return code if isinstance(code, CodeType) else None
