"""The few functions of torch that are wrapped while the monitor is on, because nothing else tells of them.

Each wrapper calls the original with the same arguments and returns its result.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch.utils.hooks import RemovableHandle

from gradguard.runtime.backward import Backward
from gradguard.runtime.graph import SavedTensor, storage_of
from gradguard.runtime.host_syncs import HostSyncs
from gradguard.runtime.level import KEY, compile_alike, unseen
from gradguard.runtime.registrations import Registrations
from gradguard.runtime.run_state import RunState
from gradguard.runtime.silent import SilentWrites
from gradguard.runtime.watch import Watch

MISSING = object()
# One wrapper each for all sessions: torch.compile knows them one by one.
MAKERS = {
    name: (getattr(torch.Tensor, name), unseen(getattr(torch.Tensor, name)))
    for name in ("_make_subclass", "as_subclass", "__new__")
}
# Nodes that torch.compile makes: what they run is not the user's code.
COMPILED = "CompiledFunction"


class Patches:
    """Installs and removes the wrappers."""

    def __init__(
        self,
        state: RunState,
        watch: Callable[[], Watch],
        backward: Backward,
        host_syncs: HostSyncs,
        silent_writes: SilentWrites,
        registrations: Registrations,
    ) -> None:
        """`watch` gives the watch of the calling thread."""
        self._state = state
        self._watch = watch
        self._running = backward
        self._host_syncs = host_syncs
        self._silent_writes = silent_writes
        self._registrations = registrations
        self._before: list[tuple[str, Any, Any]] = []
        self._apply: Any = None
        self._backward: Any = None
        self._keys: Any = None
        self._handle: Any = None
        self._inputs: Any = None

    def install(self) -> None:
        self._wrap("numpy", self._numpy)
        self._wrap("cpu", self._cpu)
        self._wrap_data()
        self._wrap_hooks("register_hook")
        self._wrap_hooks("register_post_accumulate_grad_hook")
        self._wrap_handles()
        self._wrap_apply()
        self._wrap_backward()
        self._wrap_makers()
        self._wrap_keys()
        self._wrap_checkpoints()

    def remove(self) -> None:
        if self._inputs is not None:
            torch.utils.checkpoint._CheckpointFrame.save_inputs = self._inputs
            self._inputs = None
        if self._keys is not None:
            torch._ops._compute_keyset = self._keys
            self._keys = None
        if self._backward is not None:
            torch.autograd.function.BackwardCFunction.apply = self._backward
            self._backward = None
        if self._apply is not None:
            torch.autograd.Function.apply = self._apply
            self._apply = None
        if self._handle is not None:
            RemovableHandle.__init__ = self._handle
            self._handle = None
        for name, own, wrapper in reversed(self._before):
            if torch.Tensor.__dict__.get(name) is not wrapper:
                # The program has put a wrapper of its own around ours.
                continue
            if own is MISSING:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, own)
        self._before.clear()
        for makers in MAKERS.values():
            with self._state.looking():
                compile_alike(*makers)

    def _replace(self, name: str, wrapper: Any) -> None:
        self._before.append((name, torch.Tensor.__dict__.get(name, MISSING), wrapper))
        setattr(torch.Tensor, name, wrapper)

    def _wrap(self, name: str, see: Callable[[Any], None]) -> None:
        original = getattr(torch.Tensor, name)
        state = self._state

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if state.sees() and not torch.compiler.is_compiling():
                with state.looking():
                    see(self)
            return original(self, *args, **kwargs)

        self._replace(name, wrapper)

    def _wrap_data(self) -> None:
        """`x.data = y` runs no operator."""
        state, silent_writes = self._state, self._silent_writes
        original = torch.Tensor.data

        def replace(self: Any, value: Any) -> None:
            entries: list[SavedTensor] = []
            if state.sees() and not torch.compiler.is_compiling():
                with state.looking():
                    entries = silent_writes.before_replacing(self, sys._getframe(1))
            original.__set__(self, value)
            if entries:
                with state.looking():
                    for entry in entries:
                        state.graph.move(entry, storage_of(self))

        self._replace("data", property(original.__get__, replace, original.__delete__))

    def _wrap_hooks(self, name: str) -> None:
        """The engine runs unwatched; hooks, being the user's code, are watched."""
        original = getattr(torch.Tensor, name)
        state, running = self._state, self._running

        @functools.wraps(original)
        def wrapper(self: Any, hook: Any) -> Any:
            if state.closed or torch.compiler.is_compiling() or not callable(hook):
                return original(self, hook)

            @functools.wraps(hook)
            def watched_hook(*args: Any) -> Any:
                return running.inside_hook(hook, args)

            return original(self, watched_hook)

        self._replace(name, wrapper)

    def _wrap_handles(self) -> None:
        """Every hook, of a tensor as of a module, gets its handle before it is registered."""
        state, registrations = self._state, self._registrations
        original = self._handle = RemovableHandle.__init__

        @functools.wraps(original)
        def made(self: Any, hooks_dict: Any, *args: Any, **kwargs: Any) -> None:
            original(self, hooks_dict, *args, **kwargs)
            if state.sees() and not torch.compiler.is_compiling():
                with state.looking():
                    registrations.see(self, hooks_dict, sys._getframe(1))

        RemovableHandle.__init__ = made

    def _wrap_backward(self) -> None:
        """So is the backward of a custom Function."""
        running = self._running
        kind = torch.autograd.function.BackwardCFunction
        original = self._backward = kind.__dict__["apply"]

        @functools.wraps(original)
        def apply(self: Any, *args: Any) -> Any:
            if type(self).__name__.startswith(COMPILED):
                return original(self, *args)
            return running.inside_function(original, self, args)

        kind.apply = apply

    def _wrap_apply(self) -> None:
        """Custom Functions run with grad off: only their end tells which node their results got."""
        state, watch = self._state, self._watch
        self._apply = torch.autograd.Function.__dict__["apply"]
        original = self._apply.__func__

        @functools.wraps(original)
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(cls, *args, **kwargs)
            if state.sees() and not torch.compiler.is_compiling():
                with state.looking():
                    watch().see_function(cls.__name__, result, sys._getframe(1))
            return result

        torch.autograd.Function.apply = classmethod(apply)

    def _wrap_makers(self) -> None:
        """Tensors of other types are made of results that Python has not seen."""
        for name, (original, wrapper) in MAKERS.items():
            self._replace(name, wrapper if name == "as_subclass" else staticmethod(wrapper))
            with self._state.looking():
                compile_alike(original, wrapper)

    def _wrap_keys(self) -> None:
        """Operators of higher order look for their kernels themselves, and know of no fallbacks."""
        original = self._keys = torch._ops._compute_keyset

        def compute(args: Any, kwargs: Any, non_fallthrough_keys: Any) -> Any:
            return original(args, kwargs, non_fallthrough_keys.remove(KEY))

        torch._ops._compute_keyset = compute

    def _wrap_checkpoints(self) -> None:
        """A checkpoint that is not reentrant keeps its inputs where no node shows them."""
        state = self._state
        kind = getattr(torch.utils.checkpoint, "_CheckpointFrame", None)
        original = getattr(kind, "save_inputs", None)
        if kind is None or original is None:
            return
        self._inputs = original

        @functools.wraps(original)
        def save_inputs(self: Any, *args: Any) -> Any:
            if state.sees() and not torch.compiler.is_compiling():
                with state.looking():
                    tensors = [each for each in args if isinstance(each, torch.Tensor)]
                    state.graph.see_inputs(self, state.frames.site(sys._getframe(1)), tensors)
            return original(self, *args)

        kind.save_inputs = save_inputs

    def _numpy(self, tensor: Any) -> None:
        self._watch().settle()
        if tensor.device.type == "cpu" and tensor.layout is torch.strided:
            self._silent_writes.export(tensor)

    def _cpu(self, tensor: Any) -> None:
        # From a device the copy itself is seen.
        if tensor.device.type == "cpu" and not self._state.thread().depth:
            self._host_syncs.count("Tensor.cpu", True, sys._getframe(2))
