"""Tracing of the user's code: of lines, switched on for short stretches only, and of errors if asked for.

Needed where no operator tells what happened: a write through NumPy, a tensor put into a list, an error that the code
catches itself. If something else (a debugger, coverage) already traces, nothing is traced and the callers fall back to
what they know.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from gradguard.runtime.frames import Frames
from gradguard.runtime.variables import OPTIMIZED

MOST_LINES = 20_000
Line = tuple[str, int]
# Called with the line that has just ended; returns False to be called no more.
Listener = Callable[[Line], bool]
# Called with an error, its traceback and the frame that it has reached, while that frame is being traced.
Tell = Callable[[BaseException, TracebackType, FrameType], None]


class Tracer:
    """Calls its listeners after every line of the user's code while there are any."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.listeners: list[Listener] = []
        self.previous: Line | None = None
        self.left = MOST_LINES
        self.on = False
        self.unclean = False
        self._tell: Tell | None = None
        # Other threads may be followed for their errors; lines are those of the thread that listens.
        self._thread = 0

    def follow(self, tell: Tell, frame: FrameType | None) -> bool:
        """Whether `tell` is called from now on with each error that passes the user's code in this thread.

        `frame` is where that code stands now.
        """
        if not self._may_trace():
            return False
        self._tell = tell
        self._trace(frame)
        return True

    def follow_here(self) -> None:
        """The same in a thread that has just started."""
        if self._tell is not None and self._may_trace():
            sys.settrace(self._global)

    def listen(self, listener: Listener, frame: FrameType | None) -> bool:
        """Whether lines can be traced; `frame` is where the user's code stands now."""
        if not self.on and (not self._may_trace() or self.left <= 0):
            return False
        self.listeners.append(listener)
        user = self.frames.user_frame(frame)
        if user is not None:
            self.previous = (user.f_code.co_filename, user.f_lineno)
        if not self.on:
            self.on = True
            self._thread = threading.get_ident()
        self._trace(frame)
        return True

    def _may_trace(self) -> bool:
        trace = sys.gettrace()
        return trace is None or getattr(trace, "__self__", None) is self

    def _trace(self, frame: FrameType | None) -> None:
        """The user's frames at and above `frame` are traced, and all that start from now on."""
        self.unclean = True
        sys.settrace(self._global)
        while frame is not None:
            if self.frames.is_user_file(frame.f_code.co_filename):
                if frame.f_trace is None:
                    frame.f_trace = self._local
                if self._is_ours(frame):
                    frame.f_trace_lines = self.on
            if frame is self.frames.base:
                break
            frame = frame.f_back

    def _is_ours(self, frame: FrameType) -> bool:
        return getattr(frame.f_trace, "__self__", None) is self

    def stop(self) -> None:
        """No more lines are traced; errors still are if somebody asked for them."""
        self.listeners.clear()
        self.on = False
        if self._tell is None and getattr(sys.gettrace(), "__self__", None) is self:
            sys.settrace(None)

    def close(self) -> None:
        """Nothing is traced any more."""
        self._tell = None
        self.stop()
        self.left = 0

    def clean(self, frame: FrameType | None) -> None:
        """Empties the copies of variables that tracing leaves in running frames before Python 3.13."""
        if not self.unclean or self.on:
            return
        following = self.unclean = self._tell is not None
        while frame is not None:
            if not following and self._is_ours(frame):
                frame.f_trace = None
            if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
                if self.frames.is_user_file(frame.f_code.co_filename):
                    frame.f_locals.clear()
            if frame is self.frames.base:
                return
            frame = frame.f_back

    def _global(self, frame: FrameType, event: str, argument: Any) -> Any:
        if (self.on or self._tell) and self.frames.is_user_file(frame.f_code.co_filename):
            frame.f_trace_lines = self.on
            return self._local
        return None

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception" and self._tell is not None:
            _, error, trace = argument
            self._tell(error, trace, frame)
        if not self.on or threading.get_ident() != self._thread:
            frame.f_trace_lines = False
            return self._local if self._tell is not None else None
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
