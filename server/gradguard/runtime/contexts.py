"""What a custom Function keeps on its `ctx` (GG208), looked at when its call has returned."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch

from gradguard.findings import Severity
from gradguard.runtime.frames import Place
from gradguard.runtime.run_state import RunState


class Contexts:
    """Looks at the context of each class of Function once for each attribute."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._known: dict[type, dict[str, Place]] = {}

    def see(self, node: Any) -> None:
        """`node`: of what a custom Function returned; it is the `ctx` of its `forward`."""
        cls = getattr(type(node), "_forward_cls", None)
        if cls is None:
            return
        sets = self._known.get(cls)
        if sets is None:
            sets = self._known[cls] = _sets(cls)
        for name in list(sets):
            what = _what(node, vars(node).get(name))
            if not what:
                continue
            self._state.findings.add(
                "GG208",
                sets.pop(name),
                f"`{cls.__name__}` keeps {what} as the attribute `{name}` of its context, which is the node of the graph.",
                Severity.WARNING,
            )


def _sets(cls: type) -> dict[str, Place]:
    """The attributes that `forward` and `setup_context` set on something, but for those that `backward` sets or deletes."""
    found: dict[str, Place] = {}
    for method in ("forward", "setup_context"):
        for instruction in _instructions(cls, method):
            if instruction.opname == "STORE_ATTR":
                code = getattr(cls, method).__code__
                found[instruction.argval] = Place(code, instruction.offset)
    for instruction in _instructions(cls, "backward"):
        if instruction.opname in ("STORE_ATTR", "DELETE_ATTR"):
            found.pop(instruction.argval, None)
    return found


def _instructions(cls: type, method: str) -> Iterator[dis.Instruction]:
    code = getattr(getattr(cls, method, None), "__code__", None)
    return iter(dis.get_instructions(code)) if isinstance(code, CodeType) else iter(())


def _what(node: Any, value: Any) -> str:
    values = (
        value if isinstance(value, (tuple, list)) else value.values() if isinstance(value, dict) else (value,)
    )
    kept = [one for one in values if isinstance(one, torch.Tensor)]
    if any(one._is_view() and one._base is not None and one._base.grad_fn is node for one in kept):
        return "a view of an output, which nothing frees,"
    if any(one.grad_fn is node for one in kept):
        return "an output, which only the garbage collector frees,"
    return ""
