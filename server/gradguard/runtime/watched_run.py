"""One watched run: puts the parts together and takes them apart again.

The parts do not know each other's makers: each is given here what it needs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from gradguard.findings import Finding, Limit, Span
from gradguard.runtime.backward import Backward
from gradguard.runtime.collect import Findings
from gradguard.runtime.contexts import Contexts
from gradguard.runtime.errors import TorchErrors
from gradguard.runtime.frames import Frames
from gradguard.runtime.functions import Functions
from gradguard.runtime.gradients import Gradients
from gradguard.runtime.growth import Growth
from gradguard.runtime.host_syncs import HostSyncs
from gradguard.runtime.optimizer_steps import OptimizerSteps
from gradguard.runtime.patches import Patches
from gradguard.runtime.registrations import Registrations
from gradguard.runtime.run_state import RunState
from gradguard.runtime.silent import SilentWrites
from gradguard.runtime.sync_debug import SyncDebug
from gradguard.runtime.watch import Observers, Watch
from gradguard.runtime.writers import Writers

# In light mode everything is watched for the first passes, then one pass in so many.
LIGHT_START = 3
LIGHT_EVERY = 40
# Pulses after which a pass has ended although no backward came: after some did, and in a program that has had none.
LIGHT_PULSES = 400
LIGHT_ALONE = 8


class WatchedRun:
    """Everything the monitor knows about one run. `start` and `stop` bracket the run; they may be called once."""

    def __init__(self, light: bool = False, always_user: tuple[str, ...] = ()) -> None:
        self.state = state = RunState(light, always_user)
        self.observers = observers = Observers(
            host_syncs=HostSyncs(state.findings, state.frames),
            gradients=Gradients(state),
            growth=Growth(state.findings, state.frames, state.graph, state.tracer, self._pulsed, light),
            functions=Functions(state),
            contexts=Contexts(state),
            silent_writes=SilentWrites(state),
        )
        self.forked = False
        self.on_pulse: Callable[[], None] | None = None
        self._writers = Writers(state.frames, state.graph, Backward.inside_hook.__code__, state.closures)
        self._errors = TorchErrors(state.findings, state.frames, state.graph, observers.gradients.latest_cut)
        self._optimizer_steps = OptimizerSteps(state, self._watch, observers)
        self._backward = Backward(state, self._watch, observers, self._errors, self._optimizer_steps)
        self._patches = Patches(
            state,
            self._watch,
            self._backward,
            observers.host_syncs,
            observers.silent_writes,
            Registrations(state),
        )
        self._sync_debug = SyncDebug(state, observers.host_syncs)
        self._local = threading.local()
        self._excepthook: Any = None
        self._began = 0.0
        self._elapsed: float | None = None
        # Of light mode: passes so far, and the backwards and pulses that had ended when the last of them began.
        self._pass = self._era = self._pulse = 0

    @property
    def closed(self) -> bool:
        return self.state.closed

    @property
    def elapsed(self) -> float:
        """Seconds for which was watched."""
        return time.perf_counter() - self._began if self._elapsed is None else self._elapsed

    @property
    def frames(self) -> Frames:
        return self.state.frames

    @property
    def findings(self) -> Findings:
        return self.state.findings

    @property
    def troubles(self) -> list[str]:
        """Where the monitor itself failed."""
        return self.state.troubles

    def results(self) -> tuple[tuple[Finding, ...], tuple[Limit, ...]]:
        """Findings in their order, and what the monitor could not see (with no place of its own: line 1)."""
        path = next(iter(self.frames.user_files()), "")
        limits = tuple(Limit(path, Span(1, 1, 1, 1), text) for text in self.state.limits)
        return self.findings.sorted(), limits

    # Start and stop

    def start(self, base: FrameType | None, follow: bool = False) -> None:
        """`base` is the outermost frame of the watched code. Raises RuntimeError if another run is watched.

        With `follow` the code is traced for errors that it catches itself; else `caught` has to be told of them.
        """
        global _current
        if _current is not None:
            raise RuntimeError("the gradguard monitor is already on")
        _current = self
        state = self.state
        state.frames.base = base
        state.closed = False
        self._began = time.perf_counter()
        self.observers.growth.started = self._began
        self._backward.install()
        self._patches.install()
        self._sync_debug.install()
        self._optimizer_steps.install()
        if threading.gettrace() is None:
            threading.settrace(self._thread_started)
        self._excepthook = threading.excepthook
        threading.excepthook = self._thread_failed
        if follow and not state.tracer.follow(self._passing, base):
            state.say(
                "Something else traces lines, such as a debugger or coverage: errors that the program catches itself "
                "were not seen, unless backward raised them."
            )
        self._watch().start()

    def stop(self, error: BaseException | None = None) -> None:
        """Ends the watching and draws the conclusions; `error` is what ended the watched code, if anything."""
        global _current
        state = self.state
        if state.closed:
            return
        state.tracer.close()
        if not self._watch().stop() and self._watch().on:
            state.say("Another dispatch mode was left on the stack, so the monitor could not leave it.")
        self._take_off()
        self._elapsed = self.elapsed
        complete = error is None or isinstance(error, SystemExit)
        with state.looking(), state.silenced():
            if error is not None and not complete:
                self._errors.of_statement(error, error.__traceback__)
            self.observers.growth.look()
            self.observers.growth.finish(complete)
            self.observers.host_syncs.finish()
            self.observers.gradients.finish(complete)
        self._say_limits(error)
        state.closed = state.graph.closed = True
        state.tracer.clean(sys._getframe(1))
        state.frames.base = None
        _current = None

    def _take_off(self) -> None:
        if threading.gettrace() == self._thread_started:
            threading.settrace(None)
        if threading.excepthook == self._thread_failed:
            threading.excepthook = self._excepthook
        self._backward.remove()
        self._patches.remove()
        self._sync_debug.remove()
        self._optimizer_steps.remove()

    def _say_limits(self, error: BaseException | None) -> None:
        say = self.state.say
        if isinstance(error, KeyboardInterrupt):
            say("The run was interrupted; what would have come later was not seen.")
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters["stats"].get("unique_graphs"):
            say(
                "Regions compiled by torch.compile were run as compiled code: nothing inside them was watched."
            )
        if self.observers.silent_writes.sampled:
            say("Large tensors were compared in a sample; a write that misses the sample was not seen.")
        if self.state.light:
            say(
                "Light mode: most passes were not watched, so sites and counts come from a sample of passes. Graphs that "
                "nothing uses and needless `retain_graph=True` were not looked for."
            )
        if self.troubles:
            say(f"The monitor itself failed on {len(self.troubles)} operations and skipped them.")

    # Errors that nobody sees leave the code

    def caught(self, error: BaseException, frame: FrameType | None = None) -> None:
        """The program, or the end of a thread, catches an error; `frame` is where."""
        if self.state.sees():
            with self.state.looking(), self.state.silenced():
                self._errors.of_statement(error, error.__traceback__, frame)

    def _passing(self, error: BaseException, trace: TracebackType, frame: FrameType) -> None:
        """An error has come to a frame of the program. Its own traceback is not complete yet."""
        if isinstance(error, RuntimeError) and self.state.sees():
            with self.state.looking(), self.state.silenced():
                self._errors.of_statement(error, trace, frame)

    # The watch of each thread

    def _watch(self) -> Watch:
        """The watch of this thread."""
        watch: Watch | None = getattr(self._local, "watch", None)
        if watch is None:
            watch = self._local.watch = Watch(self.state, self.observers, self._writers)
        return watch

    def _pulsed(self) -> None:
        """Light mode watches the first passes and then a sample of them."""
        if self.on_pulse is not None:
            self.on_pulse()
        state = self.state
        if not state.light:
            return
        thread = state.thread()
        if thread.depth or any(step.stopped for step in thread.steps):
            # In a step that computes its own passes, with a closure, they are passes like others.
            return
        graph = state.graph
        # A pass ends with its backward. Pulses come within it, too, with each layer that is like the first.
        most = LIGHT_PULSES if graph.era else LIGHT_ALONE
        if graph.era == self._era and graph.pulse - self._pulse < most:
            return
        self._era, self._pulse = graph.era, graph.pulse
        self._pass += 1
        if self._pass < LIGHT_START or self._pass % LIGHT_EVERY == 0:
            self._watch().start()
        else:
            self._watch().stop()

    def _thread_started(self, frame: FrameType, event: str, argument: Any) -> None:
        sys.settrace(None)
        if not self.closed:
            self.state.tracer.follow_here()
            self._watch().start()

    def _thread_failed(self, arguments: Any) -> None:
        if arguments.exc_value is not None:
            self.caught(arguments.exc_value)
        self._excepthook(arguments)

    def leave_to_parent(self) -> None:
        """In a forked child, such as a worker of a DataLoader: it is not watched, or anew by a run of its own."""
        global _current
        if self.closed:
            return
        self._watch().stop()
        self.state.closed = self.state.graph.closed = self.forked = True
        self._take_off()
        _current = None


_current: WatchedRun | None = None


def _after_fork() -> None:
    if _current is not None:
        _current.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
