"""Sees every operator of the watched code.

It stands below autograd, so grad mode, version counters and saved tensors are what they would be without it. It
keeps no tensor: results are remembered weakly until the next operator, when autograd has given them their node.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from gradguard.runtime import plans
from gradguard.runtime.contexts import Contexts
from gradguard.runtime.frames import Site
from gradguard.runtime.functions import Functions
from gradguard.runtime.gradients import Gradients
from gradguard.runtime.graph import Hidden, node_of, storage_of
from gradguard.runtime.growth import Growth
from gradguard.runtime.hidden import hidden_by
from gradguard.runtime.host_syncs import HostSyncs
from gradguard.runtime.level import level_for, skip_compiling
from gradguard.runtime.plans import Plan, plan_for
from gradguard.runtime.run_state import RunState
from gradguard.runtime.silent import SilentWrites
from gradguard.runtime.writers import Writers

MOST_RESULTS = 4
_top_hooks = torch._C._autograd._top_saved_tensors_default_hooks
_is_grad_enabled = torch.is_grad_enabled
_increment_version = torch.autograd.graph.increment_version
Tensor = torch.Tensor
DETACH = torch.ops.aten.detach.default
_compiling = torch._guards._TLS


def saved_tensor_hooks_on() -> bool:
    """Whether somebody packs saved tensors, as checkpointing does: looking at them would run that code."""
    return _top_hooks(False) is not None


@dataclass(frozen=True, slots=True)
class Observers:
    """The parts that are told what the operators of the program do, each of which looks for mistakes of its kind."""

    host_syncs: HostSyncs
    gradients: Gradients
    growth: Growth
    functions: Functions
    contexts: Contexts
    silent_writes: SilentWrites


class Watch:
    """One thread's eyes. `on` tells whether they are open. Made in the thread itself."""

    def __init__(self, state: RunState, observers: Observers, writers: Writers) -> None:
        self.state = state
        self._thread = state.thread()
        self._observers = observers
        self._writers = writers
        self.level = level_for(self)
        self.on = False
        self.plans: dict[Any, Plan] = {}
        self.pending: list[tuple[weakref.ref[Any], Site, str, bool]] = []
        # Writes through a view, by the base that gets the new node.
        self.hidden: dict[int, Hidden] = {}

    def start(self) -> None:
        if not self.on:
            self.level.enter()
            self.on = True

    def stop(self) -> bool:
        """Whether the watch was on and could be taken off; another mode on top of it makes it stay."""
        if not self.on:
            return False
        self.settle()
        self.on = not self.level.leave()
        return not self.on

    def settle(self) -> None:
        """Gives the last results their records."""
        if self.pending:
            try:
                self._flush()
            except Exception as error:
                self.state.trouble(error)

    def see(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs an operator that the level has met."""
        state = self.state
        run = func._op
        if self._thread.silent or getattr(_compiling, "compile_context", None) is not None:
            return run(*args, **kwargs)
        plan = self.plans.get(func)
        note: tuple[Site, bool] | None = None
        began = perf_counter()
        try:
            # While autograd saves a result it detaches it; the node is not complete before that.
            if self.pending and func is not DETACH:
                self._flush()
            if plan is None:
                plan = self.plans[func] = plan_for(func)
            if not plan.composite:
                state.operators += 1
                note = self._before(plan, args, kwargs)
        except Exception as error:
            state.trouble(error)
        state.seconds += perf_counter() - began
        if plan is not None and plan.composite:
            # With no kernel of autograd above, as in inference mode, it comes here whole.
            return self.level.run_parts(func, args, kwargs)
        result = run(*args, **kwargs)
        if plan is not None and plan.foreach_write and not self.level.counts_writes:
            _increment_version([t for t in args[0] if not t.is_inference()])
        if note is not None and plan is not None:
            self._after(plan, note, func, args, kwargs, result)
        return result

    def _before(self, plan: Plan, args: Any, kwargs: dict[str, Any]) -> tuple[Site, bool] | None:
        """Looks at an operator before it runs. Returns its site if autograd will record it."""
        frames, observers = self.state.frames, self._observers
        frame = sys._getframe(3)
        if (
            plan.reads_host
            or (plan.masked and plans.masks_read(plan, args))
            or (plan.copies and plans.copies_to_host(args, kwargs))
        ):
            observers.host_syncs.see(plan, kwargs, args, frame)
        if not observers.host_syncs.steps and not self._thread.depth:
            observers.host_syncs.see_pass(plan, frame)
        if self._thread.changed and plan.reads_values:
            observers.silent_writes.see_read(plan, args)
        needs = self._needs_grad(plan, args)
        if plan.drops or plan.lifts:
            observers.gradients.see_drop(plan, args, needs, frame)
        site: Site | None = None
        if plan.writes or plan.written_names or plan.statistics is not None:
            site = frames.site(frame)
            self._see_writes(plan, args, kwargs, site, frame)
        if not needs:
            if not self._thread.depth:
                observers.gradients.see_alias_reads(plan, args, frame)
            return None
        if not _is_grad_enabled():
            if not self._thread.depth:
                observers.gradients.see_use_without_grad(plan, args, frame)
            return None
        if site is None:
            site = frames.site(frame)
        if site.root is not None:
            observers.growth.see_root(site, plan.name)
        return (site, saved_tensor_hooks_on())

    def _needs_grad(self, plan: Plan, args: Any) -> bool:
        count = len(args)
        for index in plan.positions:
            if index < count:
                value = args[index]
                if isinstance(value, Tensor) and value.requires_grad:
                    return True
        for index in plan.lists:
            if index < count:
                for value in args[index] or ():
                    if isinstance(value, Tensor) and value.requires_grad:
                        return True
        return False

    def _after(
        self, plan: Plan, note: tuple[Site, bool], func: Any, args: Any, kwargs: dict[str, Any], result: Any
    ) -> None:
        site, hooked = note
        pending = self.pending
        name = plan.name
        if isinstance(result, Tensor):
            pending.append((weakref.ref(result), site, name, hooked))
        elif isinstance(result, (tuple, list)):
            for item in result[:MOST_RESULTS]:
                if isinstance(item, Tensor):
                    pending.append((weakref.ref(item), site, name, hooked))
        for index in plan.writes:
            target = args[index]
            if isinstance(target, Tensor) and target._is_view():
                # A write through a view gives the base a new node.
                base = target._base
                pending.append((weakref.ref(base), site, name, hooked))
                if not index and not hooked:
                    with self.state.looking():
                        behind = hidden_by(func, args, kwargs)
                        if behind is not None:
                            self.hidden[id(base)] = behind

    def _flush(self) -> None:
        pending, self.pending = self.pending, []
        hidden, self.hidden = self.hidden, {}
        record = self.state.graph.record
        for reference, site, name, hooked in pending:
            out = reference()
            if out is None:
                continue
            node = node_of(out)
            if node is None:
                continue
            made = record(node, site, name, out, hooked)
            if made is None:
                continue
            if made.saved:
                self._observers.silent_writes.see_saved(node, made)
            behind = hidden.get(id(out))
            if behind is not None:
                self.state.graph.see_hidden(made, behind)

    def _see_writes(
        self, plan: Plan, args: Any, kwargs: dict[str, Any], site: Site, frame: FrameType
    ) -> None:
        observers = self._observers
        targets = plans.schema_target(plan, args, kwargs)
        for target in targets:
            if target.layout is not torch.strided:
                continue
            storage = storage_of(target)
            entries = self.state.graph.by_storage.get(storage)
            if not entries and not self._thread.depth:
                if not _is_grad_enabled():
                    observers.functions.see_forward_write(target, plan, frame)
                continue
            write = self._writers.describe(plan, target, storage, site, frame)
            if self._thread.depth:
                observers.functions.see_engine_write(write, target, frame)
            for entry in list(entries or ()):
                entry.writes.append(write)
                observers.silent_writes.before_write(entry, target)

    def see_function(self, name: str, result: Any, frame: FrameType) -> None:
        """A custom Function returned."""
        if not self.on:
            return
        self.settle()
        for out in result if isinstance(result, tuple) else (result,):
            node = getattr(out, "grad_fn", None)
            if node is not None:
                self._observers.contexts.see(node)
                hooked = saved_tensor_hooks_on()
                record = self.state.graph.record(node, self.state.frames.site(frame), name, out, hooked)
                if record is not None and record.saved:
                    self._observers.silent_writes.see_saved(node, record)


skip_compiling(Watch.see)
