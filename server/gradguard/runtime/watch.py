"""The dispatch mode that sees every operator of the watched code.

It runs below autograd, so grad mode, version counters and saved tensors are what they would be without it. It
keeps no tensor: results are remembered weakly until the next operator, when autograd has given them their node. The one
thing that shows: below a mode torch makes the view of a `reshape` by `view`, and names that in its errors.
"""

from __future__ import annotations

import sys
import weakref
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from gradguard.runtime import plans
from gradguard.runtime.frames import Site
from gradguard.runtime.hidden import Hidden, hidden_by
from gradguard.runtime.plans import Plan, is_composite, plan_for
from gradguard.runtime.tape import node_of, storage_of

if TYPE_CHECKING:
    from gradguard.runtime.session import Session, Step

MOST_RESULTS = 4
_top_hooks = torch._C._autograd._top_saved_tensors_default_hooks
_is_grad_enabled = torch.is_grad_enabled
_increment_version = torch.autograd.graph.increment_version
Tensor = torch.Tensor
_is_inference = torch.is_inference_mode_enabled
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
VIEWS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
DETACH = torch.ops.aten.detach.default
_eval_frame = torch._C._dynamo.eval_frame
CAN_SKIP = hasattr(_eval_frame, "set_code_exec_strategy")


def saved_tensor_hooks_on() -> bool:
    """Whether somebody packs saved tensors, as checkpointing does: looking at them would run that code."""
    return _top_hooks(False) is not None


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """One thread's eyes. `on` tells whether it is on this thread's mode stack.

    silent: the monitor itself is computing. depth: runs of the engine under way in this thread. engine_watched: whether
    the code that called them is watched. steps: optimizer steps under way.
    """

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Compiled regions must be compiled as if nobody watched.
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would put a wrapper around the dispatch that loads its compiler, and costs more than some operators do.
        return not CAN_SKIP

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
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
            self.__enter__()
            self.on = True

    def stop(self) -> bool:
        """Whether the watch was on and could be taken off; another mode on top of it makes it stay."""
        if not self.on:
            return False
        self.settle()
        if _get_current_dispatch_mode() is not self:
            return False
        self.__exit__(None, None, None)
        self.on = False
        return True

    def settle(self) -> None:
        """Gives the last results their records."""
        if self.pending:
            try:
                self._flush()
            except Exception as error:
                self.session.trouble(error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        session = self.session
        if session.closed or self.silent:
            return func(*args, **(kwargs or {}))
        plan = self.plans.get(func)
        if _is_inference() and is_composite(func):
            return self._parts(func, args, kwargs or {})
        note: tuple[Site, bool] | None = None
        began = perf_counter()
        try:
            # While autograd saves a result it detaches it; the node is not complete before that.
            if self.pending and func is not DETACH:
                self._flush()
            if plan is None:
                plan = self.plans[func] = plan_for(func)
            session.operators += 1
            note = self._before(plan, args, kwargs or {})
        except Exception as error:
            session.trouble(error)
        session.seconds += perf_counter() - began
        result = func(*args, **(kwargs or {}))
        if plan is not None and plan.uncounted:
            _increment_version([t for t in args[0] if not t.is_inference()])
        if note is not None and plan is not None:
            self._after(plan, note, func, args, kwargs or {}, result)
        return result

    def _parts(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs a composite operator as torch does without a mode: each part is dispatched from the top.

        In inference mode it comes here whole, from above the place where views are made and writes are counted.
        """
        included = torch._C._dispatch_tls_local_include_set()
        excluded = torch._C._dispatch_tls_local_exclude_set() - VIEWS
        with torch._C._ForceDispatchKeyGuard(included, excluded), self:
            return func._op_dk(COMPOSITE, *args, **kwargs)

    def _before(self, plan: Plan, args: Any, kwargs: dict[str, Any]) -> tuple[Site, bool] | None:
        """Looks at an operator before it runs. Returns its site if autograd will record it."""
        session = self.session
        frame = sys._getframe(2)
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


if CAN_SKIP:
    # What that wrapper is for: no part of the dispatch is ever compiled.
    skip = _eval_frame._FrameAction.SKIP
    _eval_frame.set_code_exec_strategy(
        Watch.__torch_dispatch__.__code__, _eval_frame._FrameExecStrategy(skip, skip)
    )
