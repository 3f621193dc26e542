"""Line tracing of the user's code, switched on for short stretches only.

Needed where no operator tells what happened: a write through NumPy, a tensor put into a list. If something else
(a debugger, coverage) already traces, nothing is traced and the callers fall back to what they know.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from gradguard.runtime.writers import OPTIMIZED

if TYPE_CHECKING:
    from gradguard.runtime.frames import Frames

MOST_LINES = 20_000
Line = tuple[str, int]
# Called with the line that has just ended; returns False to be called no more.
Listener = Callable[[Line], bool]


class Tracer:
    """Calls its listeners after every line of the user's code while there are any."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.listeners: list[Listener] = []
        self.previous: Line | None = None
        self.left = MOST_LINES
        self.on = False
        self.unclean = False

    def listen(self, listener: Listener, frame: FrameType | None) -> bool:
        """Whether lines can be traced; `frame` is where the user's code stands now."""
        if not self.on and (sys.gettrace() is not None or self.left <= 0):
            return False
        self.listeners.append(listener)
        user = self.frames.user_frame(frame)
        if user is not None:
            self.previous = (user.f_code.co_filename, user.f_lineno)
        if not self.on:
            self.on = self.unclean = True
            sys.settrace(self._global)
        while frame is not None:
            if frame.f_trace is None and self.frames.is_user_file(frame.f_code.co_filename):
                frame.f_trace = self._local
            if frame is self.frames.base:
                break
            frame = frame.f_back
        return True

    def stop(self) -> None:
        self.listeners.clear()
        if self.on:
            self.on = False
            if getattr(sys.gettrace(), "__self__", None) is self:
                sys.settrace(None)

    def close(self) -> None:
        """No more lines are traced."""
        self.stop()
        self.left = 0

    def clean(self, frame: FrameType | None) -> None:
        """Empties the copies of variables that tracing leaves in running frames before Python 3.13."""
        if not self.unclean or self.on:
            return
        self.unclean = False
        while frame is not None:
            if getattr(frame.f_trace, "__self__", None) is self:
                frame.f_trace = None
            if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
                if self.frames.is_user_file(frame.f_code.co_filename):
                    frame.f_locals.clear()
            if frame is self.frames.base:
                return
            frame = frame.f_back

    def _global(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.on and self.frames.is_user_file(frame.f_code.co_filename):
            return self._local
        return None

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self.on:
            return None
        if event in ("line", "return"):
            self._ended()
            if event == "line":
                self.previous = (frame.f_code.co_filename, frame.f_lineno)
            else:
                caller = self.frames.user_frame(frame.f_back)
                self.previous = (caller.f_code.co_filename, caller.f_lineno) if caller is not None else None
        return self._local

    def _ended(self) -> None:
        self.left -= 1
        line = self.previous
        if line is not None:
            self.listeners[:] = [listener for listener in self.listeners if listener(line)]
        if not self.listeners or self.left <= 0:
            self.stop()
