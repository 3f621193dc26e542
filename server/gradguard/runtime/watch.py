"""Sees every operator of the watched code.

It stands below autograd, so grad mode, version counters and saved tensors are what they would be without it. It
keeps no tensor: results are remembered weakly until the next operator, when autograd has given them their node.
"""

from __future__ import annotations

import sys
import weakref
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from gradguard.runtime import plans
from gradguard.runtime.frames import Site
from gradguard.runtime.hidden import Hidden, hidden_by
from gradguard.runtime.level import level_for, skip_compiling
from gradguard.runtime.plans import Plan, plan_for
from gradguard.runtime.tape import node_of, storage_of

if TYPE_CHECKING:
    from gradguard.runtime.session import Session, Step

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


class Watch:
    """One thread's eyes. `on` tells whether they are open.

    silent: the monitor itself is computing. depth: runs of the engine under way in this thread. engine_watched: whether
    the code that called them is watched. steps: optimizer steps under way.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.level = level_for(self)
        self.on = False
        self.silent = False
        self.depth = 0
        self.engine_watched = False
        self.steps: list[Step] = []
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
                self.session.trouble(error)

    def see(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs an operator that the level has met."""
        session = self.session
        run = func._op
        if self.silent or getattr(_compiling, "compile_context", None) is not None:
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
                session.operators += 1
                note = self._before(plan, args, kwargs)
        except Exception as error:
            session.trouble(error)
        session.seconds += perf_counter() - began
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
        session = self.session
        frame = sys._getframe(3)
        if (
            plan.reads_host
            or (plan.masked and plans.masks_read(plan, args))
            or (plan.copies and plans.copies_to_host(args, kwargs))
        ):
            session.reads.see(plan, kwargs, args, frame)
        if not session.reads.steps and not self.depth:
            session.reads.see_pass(plan, frame)
        needs = self._needs_grad(plan, args)
        if plan.drops or plan.lifts:
            session.gradients.see_drop(plan, args, needs, frame)
        site: Site | None = None
        if plan.writes or plan.written_names or plan.statistics is not None:
            site = session.frames.site(frame)
            self._see_writes(plan, args, kwargs, site, frame)
        if not needs:
            if not self.depth:
                session.gradients.see_alias_reads(plan, args, frame)
            return None
        if not _is_grad_enabled():
            if not self.depth:
                session.gradients.see_use_without_grad(plan, args, frame)
            return None
        if site is None:
            site = session.frames.site(frame)
        if site.root is not None:
            session.growth.see_root(site, plan.name)
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
                    with self.session.looking():
                        behind = hidden_by(func, args, kwargs)
                        if behind is not None:
                            self.hidden[id(base)] = behind

    def _flush(self) -> None:
        pending, self.pending = self.pending, []
        hidden, self.hidden = self.hidden, {}
        record = self.session.tape.record
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
                self.session.silent_writes.see_saved(node, made)
            behind = hidden.get(id(out))
            if behind is not None:
                self.session.tape.see_hidden(made, behind)

    def _see_writes(
        self, plan: Plan, args: Any, kwargs: dict[str, Any], site: Site, frame: FrameType
    ) -> None:
        session = self.session
        tape = session.tape
        targets = plans.schema_target(plan, args, kwargs)
        for target in targets:
            if target.layout is not torch.strided:
                continue
            storage = storage_of(target)
            entries = tape.by_storage.get(storage)
            if not entries and not self.depth:
                if not _is_grad_enabled():
                    session.functions.see_forward_write(target, plan, frame)
                continue
            write = session.writers.describe(plan, target, storage, site, frame)
            if self.depth:
                session.functions.see_engine_write(write, target, frame)
            for entry in list(entries or ()):
                entry.writes.append(write)
                session.silent_writes.before_write(entry, target)


skip_compiling(Watch.see)
