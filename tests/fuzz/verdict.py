"""The judge for many small programs: the oracle's runs, without a process for each of them.

Only for grown programs: they keep no global state, start nothing and end soon.
"""

from __future__ import annotations

import io
import random
import signal
import traceback
import types
import warnings
from collections.abc import Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy
import torch

from tests.fuzz.live import rule_of
from tests.oracle.judging import NO_HOOKS, relative_gap, tolerance
from tests.oracle.programs import Gradients, as_array, describe, gradients_recorded

PATH = "program.py"
SECONDS = 2.0
"""Processor time; no grown program needs more than a few milliseconds."""
Outcome = Literal["raises", "silent", "ok", "discard"]


def seed_quickly() -> None:
    """Makes `torch.manual_seed` skip devices that are not there, which costs it milliseconds a call."""
    torch.manual_seed = torch.default_generator.manual_seed  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What torch did. `rule` is the code that speaks of the error; discard: an error that is not autograd's.

    lucky: a tensor that backward used was not as it was when it was saved, but the gradients came out right.
    """

    outcome: Outcome
    error: str = ""
    line: int | None = None
    rule: str = ""
    lucky: bool = False


class Saves:
    """Saved tensors, each cloned when it is saved; sees whether one that backward uses was written since."""

    def __init__(self) -> None:
        self.changed = False

    def keep(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            return tensor.detach(), tensor.detach().clone()

    def take(self, kept: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        now, then = kept
        if not self.changed:
            with torch.no_grad():
                self.changed = now.shape != then.shape or not torch.equal(now.nan_to_num(), then.nan_to_num())
        return then


def run(
    code: str | types.CodeType, *, cloned: bool = False, names: dict[str, Any] | None = None
) -> tuple[Verdict, list[tuple[str, Any]]]:
    """One run: its end, and every gradient it obtained. The program sees `names` besides the builtins."""
    gradients, saved = Gradients(), Saves()
    saves: AbstractContextManager[None] = nullcontext()
    if cloned:
        saves = torch.autograd.graph.saved_tensors_hooks(saved.keep, saved.take)
    main = types.ModuleType("__main__")
    main.__dict__.update(names or {})
    torch.default_generator.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    verdict = Verdict("ok")
    with ExitStack() as stack:
        stack.enter_context(time_limit(SECONDS))
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            compiled = compile(code, PATH, "exec") if isinstance(code, str) else code
            with gradients_recorded(gradients), saves:
                exec(compiled, main.__dict__)
        except TooLong:
            verdict = Verdict("discard", f"no end after {SECONDS} s")
        except Exception as error:
            raised = describe(error, PATH)
            rule = rule_of(raised.text) or ""
            verdict = Verdict("raises" if rule else "discard", raised.text, raised.line, rule)
        finally:
            torch.set_grad_enabled(True)
    for name, value in main.__dict__.items():
        if isinstance(value, torch.Tensor):
            try:
                grad = value.grad if value.is_leaf else None
            except RuntimeError:
                continue
            if grad is not None:
                gradients.found.append((f"{name}.grad", as_array(grad)))
    return (replace(verdict, lucky=True) if saved.changed else verdict), gradients.found


def calling_lines(code: str) -> set[int]:
    """Every line of the program in the traceback of its error."""
    torch.default_generator.manual_seed(0)
    try:
        with time_limit(SECONDS), redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, PATH, "exec"), {"__name__": "__main__"})
    except Exception as error:
        frames = traceback.walk_tb(error.__traceback__)
        return {line for frame, line in frames if frame.f_code.co_filename == PATH}
    return set()


class TooLong(BaseException):
    """The program did not end in time."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TooLong in the main thread after so much processor time; other work on the machine does not count."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(code: str | types.CodeType, names: dict[str, Any] | None = None) -> Verdict:
    """Plain run, and if it ends well a run with cloned saved tensors: other gradients mean silent corruption."""
    verdict, ours = run(code, names=names)
    if verdict.outcome != "ok":
        return verdict
    other, theirs = run(code, cloned=True, names=names)
    if NO_HOOKS in other.error:
        # Within torch.func no saved tensor can be cloned.
        return verdict
    if other.outcome != "ok":
        return Verdict("silent", f"raises with cloned saves: {other.error}")
    if len(ours) != len(theirs):
        return Verdict("silent", "another number of gradients with cloned saves")
    for (name, got), (_, right) in zip(ours, theirs):
        if relative_gap(got, right) > tolerance(got):
            return Verdict("silent", name)
    return replace(verdict, lucky=other.lucky)
