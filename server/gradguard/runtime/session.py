"""One watched run: puts the parts together and takes them apart again."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradguard.findings import Finding, Limit, Span
from gradguard.runtime.collect import Findings
from gradguard.runtime.engine import Engine, Survey
from gradguard.runtime.faults import Faults
from gradguard.runtime.frames import Frames, Site
from gradguard.runtime.functions import Functions
from gradguard.runtime.gradients import Gradients
from gradguard.runtime.growth import Growth
from gradguard.runtime.patches import Patches
from gradguard.runtime.reads import Reads
from gradguard.runtime.silent import SilentWrites
from gradguard.runtime.syncs import Syncs
from gradguard.runtime.tape import Call, Tape, Write, leaf_of, node_of, record_of, storage_of
from gradguard.runtime.tracer import Tracer
from gradguard.runtime.watch import Watch, saved_tensor_hooks_on
from gradguard.runtime.writers import Writers, code_of

# In light mode everything is watched for the first pulses, then one pulse in so many.
LIGHT_START = 3
LIGHT_EVERY = 40
MOST_CREATED = 20_000


class _Gone:
    """Stands for a result that nobody can reach."""


@dataclass(slots=True)
class Step:
    """An optimizer step under way: what its parameters looked like before, and the code of the closures it was given."""

    site: Site
    stopped: bool
    closures: tuple[CodeType, ...] = ()
    versions: list[tuple[Any, int]] = field(default_factory=list)


class Session:
    """Everything the monitor knows about one run. `start` and `stop` bracket the run; they may be called once."""

    def __init__(self, light: bool = False, always_user: tuple[str, ...] = ()) -> None:
        self.light = light
        self.frames = Frames(always_user)
        self.tape = Tape()
        self.findings = Findings()
        self.tracer = Tracer(self.frames)
        self.writers = Writers(self)
        self.functions = Functions(self)
        self.silent_writes = SilentWrites(self)
        self.gradients = Gradients(self)
        self.growth = Growth(self)
        self.reads = Reads(self)
        self.faults = Faults(self)
        self.engine = Engine(self)
        self.patches = Patches(self)
        self.syncs = Syncs(self)
        self.closed = True
        self.forked = False
        self.operators = 0
        self.seconds = 0.0
        self.elapsed = 0.0
        self.limits: dict[str, None] = {}
        self.troubles: list[str] = []
        self._local = threading.local()
        self._handles: list[Any] = []
        self._excepthook: Any = None
        self._began = 0.0

    # Start and stop

    def start(self, base: FrameType | None, follow: bool = False) -> None:
        """`base` is the outermost frame of the watched code. Raises RuntimeError if another session is on.

        With `follow` the code is traced for errors that it catches itself; else `caught` has to be told of them.
        """
        global _current
        if _current is not None:
            raise RuntimeError("the gradguard monitor is already on")
        _current = self
        self.frames.base = base
        self.closed = False
        self._began = time.perf_counter()
        self.growth.started = self._began
        self.engine.install()
        self.patches.install()
        self.syncs.install()
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        if threading.gettrace() is None:
            threading.settrace(self._thread_started)
        self._excepthook = threading.excepthook
        threading.excepthook = self._thread_failed
        if follow and not self.tracer.follow(self._passing, base):
            self.say(
                "Something else traces lines, such as a debugger or coverage: errors that the program catches itself "
                "were not seen, unless backward raised them."
            )
        self.watch().start()

    def stop(self, error: BaseException | None = None) -> None:
        """Ends the watching and draws the conclusions; `error` is what ended the watched code, if anything."""
        global _current
        if self.closed:
            return
        self.tracer.close()
        if threading.gettrace() == self._thread_started:
            threading.settrace(None)
        if threading.excepthook == self._thread_failed:
            threading.excepthook = self._excepthook
        if not self.watch().stop() and self.watch().on:
            self.say("Another dispatch mode was left on the stack, so the monitor could not leave it.")
        self.engine.remove()
        self.patches.remove()
        self.syncs.remove()
        for handle in self._handles:
            handle.remove()
        self.elapsed = time.perf_counter() - self._began
        complete = error is None or isinstance(error, SystemExit)
        with self.looking(), self.silenced():
            if error is not None and not complete:
                self.faults.of_statement(error, error.__traceback__)
            self.growth.look()
            self.growth.finish(complete)
            self.reads.finish()
            self.gradients.finish(complete)
        self._say_limits(error)
        self.closed = self.tape.closed = True
        self.tracer.clean(sys._getframe(1))
        self.frames.base = None
        _current = None

    def _say_limits(self, error: BaseException | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.say("The run was interrupted; what would have come later was not seen.")
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters["stats"].get("unique_graphs"):
            self.say(
                "Regions compiled by torch.compile were run as compiled code: nothing inside them was watched."
            )
        if self.silent_writes.sampled:
            self.say("Large tensors were compared in a sample; a write that misses the sample was not seen.")
        if self.light:
            self.say(
                "Light mode: most passes were not watched, so sites and counts come from a sample of passes."
            )
        if self.troubles:
            self.say(f"The monitor itself failed on {len(self.troubles)} operations and skipped them.")

    # What the parts ask

    def watch(self) -> Watch:
        """The watch of this thread."""
        watch = getattr(self._local, "watch", None)
        if watch is None:
            watch = self._local.watch = Watch(self)
        return watch

    def sees(self) -> bool:
        """Whether what this thread does now is the program's own doing."""
        return not self.closed and not self.watch().silent

    def inside_hook(self, hook: Any, args: tuple[Any, ...]) -> Any:
        """Runs a tensor hook with the watch on."""
        with self._opened():
            return hook(*args)

    def inside_function(self, backward: Any, node: Any, args: tuple[Any, ...]) -> Any:
        """Runs the backward of a custom Function with the watch on."""
        with self._opened():
            return backward(node, *args)

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """The watch is on for user code that the engine runs."""
        watch = self.watch()
        watched = watch.engine_watched if watch.depth else self.engine.running
        if self.closed or watch.silent or watch.on or not watched:
            yield
            return
        before, watch.depth = watch.depth, max(watch.depth, 1)
        watch.start()
        try:
            yield
        finally:
            watch.stop()
            watch.depth = before

    @contextmanager
    def looking(self) -> Iterator[None]:
        """The monitor looks at tensors: no code of the program runs for that, and a failure stays the monitor's own."""
        try:
            with torch._C.DisableTorchFunction():
                yield
        except Exception as error:
            self.trouble(error)

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """What the monitor computes itself is not watched."""
        watch = self.watch()
        before, watch.silent = watch.silent, True
        try:
            yield
        finally:
            watch.silent = before

    def caught(self, error: BaseException, frame: FrameType | None = None) -> None:
        """The program, or the end of a thread, catches an error; `frame` is where."""
        if self.sees():
            with self.looking(), self.silenced():
                self.faults.of_statement(error, error.__traceback__, frame)

    def _passing(self, error: BaseException, trace: TracebackType, frame: FrameType) -> None:
        """An error has come to a frame of the program. Its own traceback is not complete yet."""
        if isinstance(error, RuntimeError) and self.sees():
            with self.looking(), self.silenced():
                self.faults.of_statement(error, trace, frame)

    def user_files(self) -> list[str]:
        """Files of the user's code that were seen running."""
        return self.frames.user_files()

    def say(self, limit: str) -> None:
        self.limits.setdefault(limit)

    def unwatched_backward(self) -> None:
        self.say(
            "A backward ran in a thread that was started before the monitor; that thread is not watched."
        )

    def trouble(self, error: Exception) -> None:
        """A failure of the monitor must not become one of the script."""
        if len(self.troubles) < 20:
            self.troubles.append("".join(traceback.format_exception(error)))
        if os.environ.get("GRADGUARD_DEBUG"):
            sys.__stderr__ and print(self.troubles[-1], file=sys.__stderr__)

    def duty(self) -> None:
        """Light mode: watches the first pulses and then a sample of them."""
        pulse = self.tape.pulse
        watch = self.watch()
        if watch.steps or watch.depth:
            return
        if pulse < LIGHT_START or pulse % LIGHT_EVERY == 0:
            watch.start()
        else:
            watch.stop()

    def see_function(self, name: str, result: Any, frame: FrameType) -> None:
        """A custom Function returned."""
        watch = self.watch()
        if not watch.on:
            return
        watch.settle()
        for out in result if isinstance(result, tuple) else (result,):
            node = getattr(out, "grad_fn", None)
            if node is not None:
                hooked = saved_tensor_hooks_on()
                record = self.tape.record(node, self.frames.site(frame), name, out, hooked)
                if record is not None and record.saved:
                    self.silent_writes.see_saved(node, record)

    # Backward

    def before_backward(self, call: Call, found: Survey) -> None:
        self.gradients.before_backward(found)
        self.reads.see_backward(found, sys._getframe(2))
        self.silent_writes.check(call, found.nodes)

    def after_backward(self, call: Call, roots: Any, error: BaseException | None) -> None:
        records = call.records
        self.growth.see_retained(call)
        self.functions.after_backward()
        self.silent_writes.after_backward(call, error)
        if error is not None:
            call.failed = True
            with self.silenced():
                self.faults.of_backward(call, roots, error)
        for record in records:
            record.calls += 1
            if error is None:
                record.call = call
                if not call.retain:
                    self.tape.release(record)
            if record.site.use is not None:
                record.site.use.executed += 1
        call.records = []
        if error is None:
            self.growth.after_backward(call)

    # Optimizer steps

    def see_created(self, call: Call, results: list[Any]) -> None:
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
            if self.tape.record(node, call.site, node.name(), gone, hooked) is None:
                continue
            pending.extend(following for following, _ in node.next_functions)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.closed:
            return
        site = self.frames.site(sys._getframe(1))
        step = Step(site, False)
        given = [a for a in (*args[1:], *kwargs.values()) if callable(a)]
        with self.looking():
            step.closures = tuple(code for code in map(code_of, given) if code is not None)
            self.watch().settle()
            self.gradients.before_step(optimizer, site)
            by_storage = self.tape.by_storage
            for group in optimizer.param_groups if by_storage else ():
                for parameter in group["params"]:
                    entries = by_storage.get(storage_of(parameter))
                    if entries:
                        step.versions.append((parameter, parameter._version))
                        if group.get("fused") and parameter.grad is not None:
                            for entry in list(entries):
                                self.silent_writes.before_write(entry, parameter)
        if not given and type(optimizer).__module__.startswith("torch."):
            step.stopped = self.watch().stop()
        self.watch().steps.append(step)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        steps = self.watch().steps
        if self.closed or not steps:
            return
        step = steps.pop()
        if step.stopped:
            self.watch().start()
        with self.looking():
            for parameter, version in step.versions:
                storage = storage_of(parameter)
                if parameter._version == version and parameter.grad is None:
                    continue
                write = Write(self.tape.tick(), step.site, "step", "optimizer", storage)
                for entry in self.tape.by_storage.get(storage, ()):
                    entry.writes.append(write)
            self.reads.steps += 1
            self.growth.after_step(step.site)

    def recover(self) -> None:
        """A step that raised never came to its end: the watch it had stopped is started again."""
        watch = self.watch()
        if watch.steps and watch.steps[-1].stopped:
            watch.steps.clear()
            watch.start()

    # Threads and processes

    def _thread_started(self, frame: FrameType, event: str, argument: Any) -> None:
        sys.settrace(None)
        if not self.closed:
            self.tracer.follow_here()
            self.watch().start()

    def _thread_failed(self, arguments: Any) -> None:
        if arguments.exc_value is not None:
            self.caught(arguments.exc_value)
        self._excepthook(arguments)

    def results(self) -> tuple[tuple[Finding, ...], tuple[Limit, ...]]:
        """Findings in their order, and what the monitor could not see (with no place of its own: line 1)."""
        path = next(iter(self.user_files()), "")
        return self.findings.sorted(), tuple(Limit(path, Span(1, 1, 1, 1), text) for text in self.limits)


_current: Session | None = None


def _after_fork() -> None:
    """A forked child, such as a worker of a DataLoader, runs unwatched."""
    session = _current
    if session is not None and not session.closed:
        session.watch().stop()
        session.closed = session.tape.closed = session.forked = True
        session.engine.remove()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
