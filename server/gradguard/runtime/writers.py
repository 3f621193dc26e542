"""Who wrote: an optimizer, a hook, a custom Function, a library that keeps statistics, or plain code."""

from __future__ import annotations

import functools
import inspect
import sys
from types import CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch

from gradguard.runtime.frames import Site
from gradguard.runtime.plans import Plan
from gradguard.runtime.tape import Write

if TYPE_CHECKING:
    from gradguard.runtime.session import Session

OPTIMIZED = 0x1
FunctionCtx = torch.autograd.function.FunctionCtx


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


class Writers:
    """Names the writer of a write that matters."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.hook_caller = type(session).inside_hook.__code__

    def describe(self, plan: Plan, target: Any, storage: int, site: Site, frame: FrameType) -> Write:
        kind, site = self._kind(site, frame)
        if plan.statistics is not None:
            kind = "statistics"
        through = ""
        if target._is_view():
            through = "a view"
        elif plan.statistics is None and not target.requires_grad and kind == "inplace":
            through = "an alias without grad"
        return Write(self.session.tape.tick(), site, plan.name, kind, storage, through)

    def _kind(self, site: Site, frame: FrameType | None) -> tuple[str, Site]:
        frames = self.session.frames
        start: FrameType | None = frame
        while frame is not None and frame is not frames.base:
            if self._is_closure(frame):
                # What the program computes in it is not the optimizer's doing.
                break
            if frame.f_code.co_argcount and frame.f_code.co_varnames[0] in ("self", "ctx"):
                first = first_argument(frame)
                if isinstance(first, torch.optim.Optimizer):
                    return "optimizer", self._outside_optimizer(site, start)
                if isinstance(first, FunctionCtx):
                    name = "forward" if frame.f_code.co_name == "forward" else "backward"
                    return f"function-{name}", site
            above = frame.f_back
            if above is not None and above.f_code is self.hook_caller:
                return "hook", site
            frame = above
        return "inplace", site

    def _is_closure(self, frame: FrameType) -> bool:
        """Whether an optimizer was given this code to run in its step."""
        return any(frame.f_code is code for step in self.session.watch().steps for code in step.closures)

    def _outside_optimizer(self, site: Site, frame: FrameType | None) -> Site:
        """The site of the call into the optimizer."""
        frames = self.session.frames
        outside: FrameType | None = frame
        while frame is not None:
            if isinstance(first_argument(frame), torch.optim.Optimizer):
                outside = frame.f_back
            if frame is frames.base or self._is_closure(frame):
                break
            frame = frame.f_back
        found = frames.site(outside)
        return found if found.places else site
