"""What torch itself says about the host waiting for CUDA: `torch.cuda.set_sync_debug_mode("warn")`.

The mode is set when the program initialises CUDA, never before. Its warnings are counted and go no further: neither
filters nor records of warnings of the program see them. Nor do they see what torch says once when the mode is first
set, until the program sets it. Once the program sets the mode itself it has it to itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from gradguard.runtime.host_syncs import HostSyncs
from gradguard.runtime.plans import copies_to_device
from gradguard.runtime.run_state import RunState
from gradguard.runtime.watch import Watch

MESSAGE = "called a synchronizing CUDA operation"
NOTICE = "Synchronization debug mode is a prototype"
OURS = f"{MESSAGE}|{NOTICE}"
FILTERING = ("filterwarnings", "simplefilter", "resetwarnings")
DISPATCH = Watch.see.__code__


class SyncDebug:
    """Lets torch tell `host_syncs` of waits for CUDA."""

    def __init__(self, state: RunState, host_syncs: HostSyncs) -> None:
        self._state = state
        self._host_syncs = host_syncs
        self._get: Callable[[], int] = torch.cuda.get_sync_debug_mode
        self._set: Callable[[int | str], None] = torch.cuda.set_sync_debug_mode
        self._before = 0
        self._notice: Warning | None = None
        self._replaced: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        if torch.backends.cuda.is_built():
            torch.cuda._lazy_call(self._begin)

    def remove(self) -> None:
        if self._host_syncs.torch_tells:
            self._end(self._before)
        waiting = getattr(torch.cuda, "_queued_calls", [])
        waiting[:] = [call for call in waiting if getattr(call[0], "__self__", None) is not self]

    def _begin(self) -> None:
        """CUDA has just been initialised. Must not raise: torch would take it for an error of CUDA."""
        if self._state.closed or self._host_syncs.torch_tells:
            return
        with self._state.looking():
            self._before = self._get()
            if self._before:
                return
            self._host_syncs.torch_tells = True
            self._replace(torch.cuda, "get_sync_debug_mode", lambda: self._before)
            self._replace(torch.cuda, "set_sync_debug_mode", self._taken)
            self._replace(warnings, "_showwarnmsg", self._shown)
            for name in FILTERING:
                self._replace(warnings, name, self._with_ours(getattr(warnings, name)))
            warnings.filterwarnings("always", OURS)
            self._set("warn")

    def _taken(self, debug_mode: int | str) -> None:
        """The program sets the mode."""
        self._end(debug_mode)
        if self._notice is not None:
            warnings.warn(self._notice, stacklevel=2)

    def _end(self, debug_mode: int | str) -> None:
        self._host_syncs.torch_tells = False
        for module, name, original in reversed(self._replaced):
            setattr(module, name, original)
        self._replaced.clear()
        warnings.filters[:] = [f for f in warnings.filters if getattr(f[1], "pattern", "") != OURS]  # type: ignore[index]
        self._set(debug_mode)

    def _replace(self, module: Any, name: str, new: Any) -> None:
        self._replaced.append((module, name, getattr(module, name)))
        setattr(module, name, new)

    def _with_ours(self, original: Callable[..., None]) -> Callable[..., None]:
        """The program's own filters come after ours, so that none turns these warnings into errors."""

        def filtering(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            if original.__name__ != "filterwarnings" or OURS not in (*args, *kwargs.values()):
                warnings.filterwarnings("always", OURS)

        return filtering

    def _shown(self, message: Any) -> None:
        if str(message.message).startswith(NOTICE) and self._notice is None:
            self._notice = message.message
            return
        if str(message.message).startswith(MESSAGE):
            with self._state.looking():
                if self._state.sees():
                    self._count(sys._getframe(1))
            return
        next(original for _, name, original in self._replaced if name == "_showwarnmsg")(message)

    def _count(self, frame: FrameType) -> None:
        at: FrameType | None = frame
        while at is not None and at.f_code is not DISPATCH:
            at = at.f_back
        func = at.f_locals.get("func") if at is not None else None
        # Above the dispatch stands the code that called the operator.
        above = at.f_back if at is not None else None
        what = "a wait for CUDA" if func is None else func._schema.name
        to_device = at is not None and copies_to_device(at.f_locals["args"], at.f_locals["kwargs"] or {})
        self._host_syncs.count(what, False, above or frame, to_device=to_device)
