"""Optimizer steps: what they write, and who steps what. The optimizers of torch run unwatched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradguard.runtime.graph import StorageWrite, storage_of
from gradguard.runtime.run_state import OptimizerStep, RunState
from gradguard.runtime.variables import code_of
from gradguard.runtime.watch import Observers, Watch


class OptimizerSteps:
    """Stands before and after the step of every optimizer. `watch` gives the watch of the calling thread."""

    def __init__(self, state: RunState, watch: Callable[[], Watch], observers: Observers) -> None:
        self._state = state
        self._watch = watch
        self._observers = observers
        self._handles: list[Any] = []

    def install(self) -> None:
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def recover(self) -> None:
        """A step that raised never came to its end: the watch it had stopped is started again."""
        steps = self._state.thread().steps
        if steps and steps[-1].stopped:
            steps.clear()
            self._watch().start()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self._state
        if state.closed:
            return
        site = state.frames.site(sys._getframe(1))
        step = OptimizerStep(site, False)
        given = [a for a in (*args[1:], *kwargs.values()) if callable(a)]
        with state.looking():
            step.closures = tuple(code for code in map(code_of, given) if code is not None)
            self._watch().settle()
            self._observers.gradients.before_step(optimizer, site)
            by_storage = state.graph.by_storage
            for group in optimizer.param_groups if by_storage else ():
                for parameter in group["params"]:
                    entries = by_storage.get(storage_of(parameter))
                    if entries:
                        step.versions.append((parameter, parameter._version))
                        for entry in list(entries) if parameter.grad is not None else ():
                            # No counter tells of a fused step, and none is compared for what a `ctx` keeps.
                            if group.get("fused") or entry.on_ctx:
                                self._observers.silent_writes.before_write(entry, parameter)
        if not given and type(optimizer).__module__.startswith("torch."):
            step.stopped = self._watch().stop()
        state.thread().steps.append(step)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self._state
        steps = state.thread().steps
        if state.closed or not steps:
            return
        step = steps.pop()
        if step.stopped:
            self._watch().start()
        with state.looking():
            for parameter, version in step.versions:
                storage = storage_of(parameter)
                if parameter._version == version and parameter.grad is None:
                    continue
                write = StorageWrite(state.graph.tick(), step.site, "step", "optimizer", storage)
                for entry in state.graph.by_storage.get(storage, ()):
                    entry.writes.append(write)
            self._observers.host_syncs.steps += 1
            self._observers.growth.after_step(step.site)
