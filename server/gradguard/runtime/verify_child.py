"""The process that runs the forms of a program for `verify`. Imports torch."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils.checkpoint
from torch.autograd.profiler import profile

from gradguard.runtime import verify_values as held
from gradguard.runtime.verify import NO_WRITES
from gradguard.runtime.verify_forms import OutOfPlace, Seen, Watched, new_tensor, reference
from gradguard.runtime.verify_program import Program, Ran, Unusable


def main(given: str, answer: str) -> None:
    """Read a task, write what was found."""
    # Its last words tell what a program died of.
    faulthandler.enable()
    found = compare(json.loads(Path(given).read_text("utf-8")))
    part = Path(f"{answer}.part")
    part.write_text(json.dumps(found), "utf-8")
    part.replace(answer)


def compare(task: dict[str, Any]) -> dict[str, Any]:
    """Run the forms of a `verify.Task` in this process; the fields of a `verify.Comparison`."""
    _load()
    try:
        return _Comparing(task).run()
    except Unusable as error:
        return {"trouble": str(error)}


def _load() -> None:
    """What torch loads of its own and of Python's on first use is not to come from the folder of the user's file."""
    with profile(use_kineto=True, profile_memory=True) as profiler:
        for form in (reference, OutOfPlace().running):
            with form(), Watched("", Seen(), new_tensor), held.own_work():
                made = torch.ones(1, requires_grad=True).exp()
                made += 1
                torch.autograd.backward([made], [torch.ones(1)])
    _peak(profiler)
    # To give it a seed.
    with contextlib.suppress(ImportError):
        importlib.import_module("numpy.random")
    torch.jit._state.disable()
    torch.compile = _not_compiled
    torch.nn.Module.compile = lambda self, *args, **kwargs: None


def _not_compiled(model: Any = None, **options: Any) -> Any:
    """What is compiled is run as it is written: compilers make writes of their own, and round otherwise."""
    return model if model is not None else lambda function: function


def _peak(profiler: Any) -> int:
    """Most memory in use at one time, over that at the start, without what was used to compare."""
    events = profiler.kineto_results.events()
    own = sorted((e.start_ns(), e.end_ns()) for e in events if e.name() == held.OWN_WORK)
    used = peak = at = 0
    for event in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        while at < len(own) and own[at][1] < event.start_ns():
            at += 1
        if at < len(own) and own[at][0] <= event.start_ns():
            continue
        used += event.nbytes()
        peak = max(peak, used)
    return peak


@dataclass(slots=True)
class _Run:
    ran: Ran
    peak: int = 0


class _Comparing:
    """The version that is verified, as it is, with what the other one means."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.one_text = task["before"] == task["after"]
        self.loose = bool(task.get("other_file")) or torch.cuda.is_available()
        self.seen = Seen()
        self.loaded = set(sys.modules)
        self.unsteady: set[str] = set()
        """Names of what differs from run to run."""
        self.dtypes: set[torch.dtype] = set()

    def run(self) -> dict[str, Any]:
        """Raises Unusable."""
        right = self._reference()
        # Within torch.func no saved tensor is a copy; torch itself says then that it was a write.
        overwritten = OVERWRITTEN in right.forward_error + right.backward_error
        if right.forward_error and not (self._refused(right) or overwritten):
            raise Unusable(f"the {self._name()} does not run: {right.forward_error}")
        if self.one_text and not (self.seen.writes or self.seen.unseen):
            raise Unusable(NO_WRITES)
        if right.backward_error and not overwritten:
            raise Unusable(f"the {self._name()} has no backward that runs: {right.backward_error}")
        got = self._measured(self.task["after"], contextlib.nullcontext)
        if not (right.forward_error or right.backward_error):
            self._something(right)
        forward, gradients, notes = self._differences(right, got.ran)
        notes += right.notes
        peak = 0
        if not (got.ran.forward_error or got.ran.backward_error or right.forward_error):
            peak = self._other_peak(right)
        changed = got.ran.written if self.one_text else got.ran.written - right.written
        if changed and self.one_text and self._writes_on_purpose(got.ran):
            notes += [f"{name} is overwritten, as is its purpose" for name in sorted(changed)]
            changed = set()
        return {
            "forward": forward,
            "backward": got.ran.backward_error,
            "gradients": gradients,
            "reached": not (right.forward_error or got.ran.forward_error),
            "values": len(right.values),
            "compared": len(right.gradients),
            "changed": sorted(changed),
            "peak_before": peak,
            "peak_after": got.peak if peak else 0,
            "writes": sorted(self.seen.writes),
            "unseen": [f"{line}:{through}" for through, lines in self.seen.unseen.items() for line in lines],
            "tolerance": held.tolerance(self.dtypes, self.loose),
            "notes": notes,
        }

    def _refused(self, right: Ran) -> bool:
        """Whether the program ended at a write that torch refuses; it may have caught another one."""
        return bool(self.seen.refused) and self.seen.refused.endswith(right.forward_error)

    def _writes_on_purpose(self, ran: Ran) -> bool:
        """A function that returns nothing is there for what it writes, and so is one with a name of torch's kind."""
        return not ran.returns or self.task["function"].endswith("_")

    def _name(self) -> str:
        return "program" if self.one_text else "version to compare with"

    def _reference(self) -> Ran:
        """What the first version means."""
        program = Program(self.task, self.task["before"], self.loaded)
        work = program.prepare()
        watched = Watched(self.task["path"], self.seen)
        with reference(), watched:
            work()
        watched.finish()
        return program.ran

    def _measured(self, text: str, form: Callable[[], contextlib.AbstractContextManager[object]]) -> _Run:
        program = Program(self.task, text, self.loaded)
        work = program.prepare()
        with profile(use_kineto=True, profile_memory=True) as profiler, form():
            work()
        return _Run(program.ran, _peak(profiler))

    def _other_peak(self, right: Ran) -> int:
        """The memory of the form that is compared with; 0 where that form does not compute the same."""
        if not self.one_text:
            run = self._measured(self.task["before"], contextlib.nullcontext)
        else:
            run = self._measured(self.task["before"], self._out_of_place)
        ran = run.ran
        same = not (
            ran.forward_error
            or ran.backward_error
            or _differing(right.values, self._steady(ran.values), False)
            or _differing(right.gradients, self._steady(ran.gradients), False)
        )
        return run.peak if same else 0

    def _steady(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in values.items() if name not in self.unsteady}

    @contextlib.contextmanager
    def _out_of_place(self) -> Iterator[None]:
        with OutOfPlace().running(), Watched(self.task["path"], Seen(), new_tensor):
            yield

    def _something(self, right: Ran) -> None:
        if not right.values:
            raise Unusable(
                "nothing to compare: it returns no tensor and no number, and changes nothing that outlasts it; "
                "return what it computes"
            )
        if right.differentiable and not right.gradients:
            raise Unusable(
                "no gradient to compare: what it returns has a history, and no leaf of it got a gradient; "
                "give an input with requires_grad=True"
            )

    def _differences(self, right: Ran, got: Ran) -> tuple[list[str], list[str], list[str]]:
        """Of values, of gradients; and notes on what differs from run to run and was left out."""
        if right.forward_error and self._refused(right):
            return [f"torch refuses a write, and not to a copy: {self.seen.refused}"], [], []
        for each in (*right.values.values(), *right.gradients.values()):
            if isinstance(each, torch.Tensor):
                self.dtypes.add(each.dtype)
        if got.forward_error:
            return [f"raises {got.forward_error}"], [], []
        forward = _differing(right.values, got.values, self.loose)
        if got.backward_error:
            # It has not come farther.
            forward = {name: told for name, told in forward.items() if name in got.values}
        gradients = {} if got.backward_error else _differing(right.gradients, got.gradients, self.loose)
        if not (forward or gradients):
            return [], [], []
        again = self._reference()
        unsteady = self.unsteady = {
            name
            for one, other in ((right.values, again.values), (right.gradients, again.gradients))
            for name in _differing(one, other, self.loose)
        }
        for name in unsteady:
            forward.pop(name, None)
            gradients.pop(name, None)
            right.values.pop(name, None)
            right.gradients.pop(name, None)
        if unsteady and not right.values:
            raise Unusable(
                f"nothing to compare: {', '.join(sorted(unsteady))} differs from run to run; seed what it hangs on"
            )
        notes = [f"{name} differs from run to run, and is left out" for name in sorted(unsteady)]
        return list(forward.values()), list(gradients.values()), notes


OVERWRITTEN = "modified by an inplace operation"


def _differing(right: dict[str, Any], got: dict[str, Any], loose: bool) -> dict[str, str]:
    found = {}
    for name, value in right.items():
        if name not in got:
            found[name] = f"{name} is missing"
        elif told := held.difference(value, got[name], loose=loose):
            found[name] = f"{name} {told}"
    for name in got:
        if name not in right:
            found[name] = f"{name} is new"
    return found
