"""Writes inside custom Functions and tensor hooks (GG108, GG110)."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from gradguard.findings import Severity
from gradguard.runtime.frames import Place
from gradguard.runtime.graph import StorageWrite, storage_of
from gradguard.runtime.level import level_for
from gradguard.runtime.plans import Plan
from gradguard.runtime.run_state import RunState
from gradguard.runtime.variables import argument_names, locals_of
from gradguard.runtime.writers import FunctionCtx


class Functions:
    """Watches what user code does to the tensors autograd hands it."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.unshared = 0
        self._hook_writes: dict[Place, int] = {}

    def owners_when_unshared(self) -> int:
        """How many owners the target of an in-place op has in a hook when no other branch shares the gradient."""
        if not self.unshared:
            counter = _CountOwners(self.state)
            with self.state.silenced(), torch.enable_grad(), level_for(counter):
                hidden = torch.zeros(1, requires_grad=True) * 1
                hidden.register_hook(
                    lambda grad: grad.mul_(1)
                )  # gradguard: ignore[GG110] its owners are counted
                torch.autograd.backward((hidden * 3).sum())
            self.unshared = max(counter.owners, 1)
        return self.unshared

    def see_forward_write(self, target: Any, plan: Plan, frame: FrameType) -> None:
        """A write with grad off: does it hit an input of a custom Function that is not marked dirty?"""
        if not (plan.writes or plan.written_names):
            return
        user = self.state.frames.user_frame(frame)
        if user is None or user.f_code.co_name != "forward" or user.f_code.co_argcount < 1:
            return
        names = argument_names(user.f_code)
        values = locals_of(user, names)
        if not isinstance(values.get(names[0]), FunctionCtx) or "mark_dirty" in user.f_code.co_names:
            return
        storage = storage_of(target)
        for name in names[1:]:
            for value in _tensors(values[name]) if name in values else ():
                if storage_of(value) == storage and value.requires_grad:
                    self.state.findings.add(
                        "GG108",
                        self.state.frames.site(frame).inner,
                        f"`forward` of a custom Function writes its input `{name}` in place without `ctx.mark_dirty`: "
                        "autograd does not know that the value changed.",
                        Severity.WARNING,
                    )
                    return

    def see_engine_write(self, write: StorageWrite, target: Any, frame: FrameType) -> None:
        """A write while backward runs."""
        if write.kind == "function-backward":
            self._backward_write(write, target, frame)
        elif write.kind == "hook":
            self._hook_write(write, target, frame)

    def _backward_write(self, write: StorageWrite, target: Any, frame: FrameType) -> None:
        user = self.state.frames.user_frame(frame)
        if user is None:
            return
        names = argument_names(user.f_code)
        values = locals_of(user, names)
        context = values.get(names[0]) if names else None
        if not isinstance(context, FunctionCtx):
            return
        what = ""
        for value in _saved(context):
            if storage_of(value) == write.storage:
                what = "a tensor that its forward saved"
        for name in names[1:]:
            for value in _tensors(values.get(name)):
                if storage_of(value) == write.storage:
                    what = f"the gradient `{name}` it was given"
        if what:
            self.state.findings.add(
                "GG108",
                write.site.inner,
                f"`backward` of a custom Function writes {what}: another backward, or another branch that shares "
                "the tensor, reads the changed values.",
                Severity.WARNING,
            )

    def _hook_write(self, write: StorageWrite, target: Any, frame: FrameType) -> None:
        user = self.state.frames.user_frame(frame)
        if user is None:
            return
        names = argument_names(user.f_code)
        values = locals_of(user, names)
        if not any(target is v for n in names for v in _tensors(values.get(n))):
            return
        place = write.site.inner
        if place is not None:
            self._hook_writes[place] = max(target._use_count(), self._hook_writes.get(place, 0))

    def after_backward(self) -> None:
        """Judges the writes of hooks: the owners of an unshared gradient can only be counted outside a dispatch."""
        writes, self._hook_writes = self._hook_writes, {}
        for place, owners in writes.items():
            if owners > self.owners_when_unshared():
                self.state.findings.add(
                    "GG110",
                    place,
                    "A tensor hook writes its gradient in place, and another branch of the graph holds the same "
                    "gradient tensor: that branch receives the changed values.",
                    Severity.WARNING,
                )


class _CountOwners:
    def __init__(self, state: RunState) -> None:
        self.state = state
        self.owners = 0

    def see(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if func._schema.name == "aten::mul_":
            self.owners = args[0]._use_count()
        return func._op(*args, **kwargs)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [v for v in value if isinstance(v, torch.Tensor)]
    return []


def _saved(context: Any) -> list[Any]:
    try:
        return _tensors(context.saved_tensors)
    except RuntimeError:
        return []
