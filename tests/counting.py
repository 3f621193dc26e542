"""Counting what Python does, where the right answer must not grow faster than its input: time differs from run to run."""

from __future__ import annotations

import ast
import difflib
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import gradguard

COUNTED = (os.path.dirname(gradguard.__file__), ast.__file__, difflib.__file__, "<string>")
"""Code whose instructions count, that of dataclasses among it; what is C, or anybody else's, does not."""


def steps(action: Callable[[], object]) -> int:
    """Instructions that gradguard's own code took, generator expressions and walks over trees among them."""
    count = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "opcode"
        return step

    def called(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(COUNTED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    sys.settrace(called)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def growth(make: Callable[[int], Callable[[], object]], small: int = 60) -> float:
    """How many times the steps of an input four times as long are those of the short one: 4 if they grow with it.

    make: the action for an input of this length; what it does before it returns does not count.
    """
    make(small)()  # what is made once, such as patterns, is made now
    return steps(make(4 * small)) / steps(make(small))


LINEAR = 5.5
"""More than four, less than the sixteen of what grows with the square."""
