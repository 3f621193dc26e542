"""Watches every run of the autograd engine from outside: what it will run, how it ended, and the hooks it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.autograd.graph

from gradguard.runtime.errors import TorchErrors
from gradguard.runtime.graph import BackwardCall, leaf_of, node_of, record_of
from gradguard.runtime.optimizer_steps import OptimizerSteps
from gradguard.runtime.run_state import RunState, ThreadState
from gradguard.runtime.survey import Survey, survey
from gradguard.runtime.watch import Observers, Watch, saved_tensor_hooks_on

MOST_CREATED = 20_000


class _Gone:
    """Stands for a result that nobody can reach."""


class Backward:
    """Stands before `_engine_run_backward`, through which backward and grad both go.

    `watch` gives the watch of the calling thread.
    """

    def __init__(
        self,
        state: RunState,
        watch: Callable[[], Watch],
        observers: Observers,
        errors: TorchErrors,
        steps: OptimizerSteps,
    ) -> None:
        self._state = state
        self._watch = watch
        self._observers = observers
        self._errors = errors
        self._steps = steps
        self._original = torch.autograd.graph._engine_run_backward
        self._calls = 0
        self._explained = 0
        # Watched runs under way in all threads; hooks of a device run in the engine's own threads.
        self._running = 0
        self._lock = threading.Lock()

    def install(self) -> None:
        for module in (torch.autograd, torch.autograd.graph):
            if module.__dict__.get("_engine_run_backward") is self._original:
                module._engine_run_backward = self.run

    def remove(self) -> None:
        for module in (torch.autograd, torch.autograd.graph):
            if getattr(module.__dict__.get("_engine_run_backward"), "__self__", None) is self:
                module._engine_run_backward = self._original

    def run(self, t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
        state = self._state
        watch, thread = self._watch(), state.thread()
        # Code that the engine runs may run it again, as checkpoints do after they have computed their part anew.
        inner = thread.depth > 0
        if state.closed or thread.silent or (inner and not watch.on):
            return self._original(t_outputs, *args, **kwargs)
        if not inner:
            self._steps.recover()
        watched = watch.on
        if not watched and not state.light:
            state.say(
                "A backward ran in a thread that was started before the monitor; that thread is not watched."
            )
        call: BackwardCall | None = None
        found: Survey | None = None
        with state.looking():
            watch.settle()
            call = self._call(args, kwargs)
            if watched:
                inputs = args[3] if len(args) > 3 else kwargs.get("inputs")
                found = survey(t_outputs, inputs)
                call.records = found.records
                self._begins(call, found)
        leaves = (
            [leaf for leaf, _ in found.leaves]
            if found is not None and call is not None and call.create
            else []
        )
        if found is not None:
            found.nodes.clear()
            found.leaves.clear()
        # The engine runs without the watch: below a dispatch mode some formulas of backward take another way.
        stopped = watched and watch.stop()
        self._count(thread, 1, watched)
        try:
            result = self._original(t_outputs, *args, **kwargs)
        except BaseException as error:
            self._ended(call, t_outputs, error, inner)
            raise
        finally:
            self._count(thread, -1, watched)
            if stopped:
                watch.start()
        if watched and call is not None and call.create:
            with state.looking():
                grads = [leaf.grad for leaf in leaves] if call.accumulate else list(result)
                self._see_created(call, grads)
                self._observers.growth.see_create_graph(call, leaves)
        self._ended(call, t_outputs, None, inner)
        return result

    def _count(self, thread: ThreadState, change: int, watched: bool) -> None:
        thread.depth += change
        thread.engine_watched = watched and thread.depth > 0
        if watched:
            with self._lock:
                self._running += change

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BackwardCall:
        self._calls += 1
        site = self._state.frames.site(sys._getframe(2))
        retain = bool(args[1]) if len(args) > 1 else False
        create = bool(args[2]) if len(args) > 2 else False
        return BackwardCall(self._calls, site, retain, create, bool(kwargs.get("accumulate_grad", True)))

    def _begins(self, call: BackwardCall, found: Survey) -> None:
        observers = self._observers
        observers.gradients.before_backward(found)
        observers.host_syncs.see_backward(found, sys._getframe(2))
        observers.silent_writes.check(call, found.nodes)

    def _ended(self, call: BackwardCall | None, roots: Any, error: BaseException | None, inner: bool) -> None:
        if call is None:
            return
        with self._state.looking():
            self._watch().settle()
            self._conclude(call, roots, error, inner)

    def _conclude(self, call: BackwardCall, roots: Any, error: BaseException | None, inner: bool) -> None:
        observers = self._observers
        records = call.records
        observers.growth.see_retained(call)
        observers.functions.after_backward()
        observers.silent_writes.after_backward(call, error)
        if error is not None:
            call.failed = True
            # An error of a run within this one has been told of there.
            if id(error) != self._explained:
                with self._state.silenced():
                    self._errors.of_backward(call, roots, error)
            self._explained = id(error) if inner else 0
        for record in records:
            record.calls += 1
            if error is None:
                record.call = call
                if not call.retain:
                    self._state.graph.release(record)
            if record.site.use is not None:
                record.site.use.executed += 1
        call.records = []
        if error is None and not inner:
            observers.growth.after_backward(call)

    def _see_created(self, call: BackwardCall, results: list[Any]) -> None:
        """A backward with `create_graph=True` made new nodes while the watch was off: they get records now."""
        gone = _Gone()
        pending = [node_of(r) for r in results if r is not None]
        left = MOST_CREATED
        while pending and left:
            node = pending.pop()
            if node is None or record_of(node) is not None or leaf_of(node) is not None:
                continue
            left -= 1
            hooked = saved_tensor_hooks_on()
            if self._state.graph.record(node, call.site, node.name(), gone, hooked) is None:
                continue
            pending.extend(following for following, _ in node.next_functions)

    # Code of the program that the engine runs

    def inside_hook(self, hook: Any, args: tuple[Any, ...]) -> Any:
        """Runs a tensor hook with the watch on."""
        with self._opened():
            return hook(*args)

    def inside_function(self, backward: Any, node: Any, args: tuple[Any, ...]) -> Any:
        """Runs the backward of a custom Function with the watch on."""
        with self._opened():
            thread = self._state.thread()
            before = thread.changed
            with self._state.looking():
                thread.changed = self._observers.silent_writes.changed_on(node)
            try:
                return backward(node, *args)
            finally:
                thread.changed = before

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """The watch is on for user code that the engine runs."""
        watch, thread = self._watch(), self._state.thread()
        watched = thread.engine_watched if thread.depth else self._running
        if self._state.closed or thread.silent or watch.on or not watched:
            yield
            return
        before, thread.depth = thread.depth, max(thread.depth, 1)
        watch.start()
        try:
            yield
        finally:
            watch.stop()
            thread.depth = before
