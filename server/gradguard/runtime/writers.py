"""Who wrote: an optimizer, a hook, a custom Function, a library that keeps statistics, or plain code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

import torch

from gradguard.runtime.frames import Frames, Site
from gradguard.runtime.graph import LiveGraph, StorageWrite
from gradguard.runtime.plans import Plan
from gradguard.runtime.variables import first_argument

FunctionCtx = torch.autograd.function.FunctionCtx
CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")


class Writers:
    """Names the writer of a write that matters.

    `hook_caller` is the code that runs the hooks of the program; `closures` gives the code that the optimizer steps under
    way in this thread were given to run.
    """

    def __init__(
        self,
        frames: Frames,
        graph: LiveGraph,
        hook_caller: CodeType,
        closures: Callable[[], Iterable[CodeType]],
    ) -> None:
        self._frames = frames
        self._graph = graph
        self._hook_caller = hook_caller
        self._closures = closures

    def describe(self, plan: Plan, target: Any, storage: int, site: Site, frame: FrameType) -> StorageWrite:
        kind, site = self._kind(site, frame)
        if plan.statistics is not None:
            kind = "statistics"
        through = ""
        if target._is_view():
            through = "a view"
        elif plan.statistics is None and not target.requires_grad and kind == "inplace":
            through = "an alias without grad"
        return StorageWrite(self._graph.tick(), site, plan.name, kind, storage, through)

    def _kind(self, site: Site, frame: FrameType | None) -> tuple[str, Site]:
        frames = self._frames
        start: FrameType | None = frame
        while frame is not None and frame is not frames.base:
            if self._is_closure(frame):
                # What the program computes in it is not the optimizer's doing.
                break
            if frame.f_code.co_filename.endswith(CHECKPOINT):
                # It runs the program's code as if nobody stood there.
                break
            if frame.f_code.co_argcount and frame.f_code.co_varnames[0] in ("self", "ctx"):
                first = first_argument(frame)
                if isinstance(first, torch.optim.Optimizer):
                    return "optimizer", self._outside_optimizer(site, start)
                if isinstance(first, FunctionCtx):
                    name = "forward" if frame.f_code.co_name == "forward" else "backward"
                    return f"function-{name}", site
            above = frame.f_back
            if above is not None and above.f_code is self._hook_caller:
                return "hook", site
            frame = above
        return "inplace", site

    def _is_closure(self, frame: FrameType) -> bool:
        """Whether an optimizer was given this code to run in its step."""
        return any(frame.f_code is code for code in self._closures())

    def _outside_optimizer(self, site: Site, frame: FrameType | None) -> Site:
        """The site of the call into the optimizer."""
        frames = self._frames
        outside: FrameType | None = frame
        while frame is not None:
            if isinstance(first_argument(frame), torch.optim.Optimizer):
                outside = frame.f_back
            if frame is frames.base or self._is_closure(frame):
                break
            frame = frame.f_back
        found = frames.site(outside)
        return found if found.places else site
