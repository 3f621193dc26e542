"""Whether a fixed program does what its original did, as torch sees it. Imports torch: runs in workers.

The original runs with every saved tensor cloned when it is saved, so that its gradients are those of the
forward that really happened; the fixed program runs as it is.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import traceback
import types
import warnings
from collections.abc import Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from gradguard.check.settings import Settings
from gradguard.cli import fix as cli_fix
from gradguard.cli.worker import Checker, Job
from gradguard.findings import Span
from gradguard.fixes import api
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.source.text import Source
from tests.fixes.outcomes import NotGrown, Outcome, Rewrite
from tests.fixes.undoing import undone
from tests.fuzz.live import rule_of
from tests.fuzz.verdict import TooLong, time_limit
from tests.oracle.judging import relative_gap, tolerance
from tests.oracle.programs import Gradients, as_array, cloned_saves, describe, gradients_recorded

PATH = "program.py"
SECONDS = 20.0
SECOND = "backward through the graph a second time"
SAME = 80
"""Characters after which torch's errors go on with shapes and versions."""


@dataclass(slots=True)
class Ran:
    """What one run showed. `gradients`: of each backward or grad call. `values`: at the end, by global name."""

    error: str = ""
    at: str = ""
    """The line that raised it, without its indentation."""
    roots: list[Any] = field(default_factory=list)
    gradients: list[list[Any]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    printed: str = ""


def run(code: str, *, cloned: bool = False, retained: bool = False, seconds: float = SECONDS) -> Ran:
    """One run in this process. `retained`: no backward frees the graph that it went through."""
    ran, gradients = Ran(), Gradients()
    main = types.ModuleType("__main__")
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    saves: AbstractContextManager[None] = cloned_saves() if cloned else nullcontext()
    output = io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(time_limit(seconds))
        stack.enter_context(redirect_stdout(output))
        stack.enter_context(redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            compiled = compile(code, PATH, "exec")
            with graphs_retained() if retained else nullcontext(), gradients_recorded(gradients), saves:
                exec(compiled, main.__dict__)
        except TooLong:
            ran.error = "no end"
        except Exception as error:
            ran.error = f"{type(error).__name__}: {error}"
            raised = describe(error, PATH).line
            ran.at = code.splitlines()[raised - 1].strip() if raised else ""
        finally:
            torch.set_grad_enabled(True)
    ran.roots, ran.gradients = gradients.roots, gradients.calls
    # Whether a printed tensor has a graph is not one of its values.
    ran.printed = re.sub(r",\s+(grad_fn=<\w+>|requires_grad=True)", "", output.getvalue())
    for name, value in main.__dict__.items():
        if isinstance(value, torch.Tensor):
            ran.values[name] = as_array(value)
            with contextlib.suppress(RuntimeError):  # a view whose base was written refuses to say
                if value.is_leaf and value.requires_grad:
                    ran.values[f"{name}.grad"] = as_array(value.grad)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            ran.values[name] = numpy.array(value)
        elif isinstance(value, (list, tuple)) and all(
            isinstance(one, (torch.Tensor, float, int)) for one in value
        ):
            ran.values.update({f"{name}[{i}]": _number(one) for i, one in enumerate(value)})
    return ran


@contextlib.contextmanager
def graphs_retained() -> Iterator[None]:
    """A second backward finds what the first one went through."""
    backward, grad = torch.autograd.backward, torch.autograd.grad

    def retaining_backward(
        tensors: Any, grad_tensors: Any = None, retain: Any = None, *rest: Any, **more: Any
    ) -> None:
        more.pop("retain_graph", None)
        backward(tensors, grad_tensors, True, *rest, **more)

    def retaining_grad(*args: Any, **more: Any) -> Any:
        return grad(*args[:3], **{**more, "retain_graph": True})

    torch.autograd.backward, torch.autograd.grad = retaining_backward, retaining_grad
    try:
        yield
    finally:
        torch.autograd.backward, torch.autograd.grad = backward, grad


def _number(value: Any) -> Any:
    return as_array(value) if isinstance(value, torch.Tensor) else numpy.array(value)


def differences(right: Ran, got: Ran, *, calls_differ: bool = False) -> list[str]:
    """Where a run differs from another that is right. `calls_differ`: backward is called at other times."""
    found = []
    if not prints_alike(got.printed, right.printed):
        found.append("prints something else")
    for name, value in right.values.items():
        if name not in got.values:
            # A leaf without a gradient, such as a view made under no_grad, may become a tensor that asks for none.
            if name.endswith(".grad") and value is None:
                continue
            found.append(f"{name} is gone")
        elif not close(got.values[name], value):
            found.append(f"{name} differs")
    if calls_differ:
        return found
    if len(got.roots) != len(right.roots):
        found.append("another number of roots")
    found += [f"root {i} differs" for i, (a, b) in enumerate(zip(got.roots, right.roots)) if not close(a, b)]
    if len(got.gradients) != len(right.gradients):
        found.append("another number of backward calls")
    for index, (mine, theirs) in enumerate(zip(got.gradients, right.gradients)):
        # Leaves come in the order of the graph, which a fix may change.
        left = list(mine)
        for one in theirs:
            match = next((i for i, other in enumerate(left) if close(other, one)), None)
            if match is None:
                found.append(f"gradients of call {index} differ")
                break
            del left[match]
        else:
            if left:
                found.append(f"call {index} reaches more leaves")
    return found


def prints_alike(one: str, other: str) -> bool:
    """The same text, up to rounding of the fractions in it: `0.1234` and `0.1235` differ by one digit."""
    if FRACTION.sub("", one) != FRACTION.sub("", other):
        return False
    pairs = zip(FRACTION.findall(one), FRACTION.findall(other))
    return all(
        abs(float(a) - float(b)) <= max(abs(float(b)) * tolerance(None), 1.1 * _digit(a), 1.1 * _digit(b))
        for a, b in pairs
    )


FRACTION = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def _digit(number: str) -> float:
    """What one more in the last digit adds."""
    fraction, _, exponent = number.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(fraction.partition(".")[2])))


def close(one: Any, other: Any) -> bool:
    """Equal up to rounding."""
    if one is None or other is None:
        return one is other
    one, other = numpy.asarray(one), numpy.asarray(other)
    if one.dtype == bool or other.dtype == bool or one.size == 0:
        return one.shape == other.shape and bool((one == other).all())
    return relative_gap(one, other) <= tolerance(one)


def fixed(code: str, *, unsafe: bool = False) -> tuple[cli_fix.Fixed, tuple[str, ...]]:
    """The program with all fixes made, and the codes that are left."""
    done = cli_fix.fix(_job(code), Checker(None), unsafe=unsafe)
    return done, tuple(finding.code for finding in done.report.findings)


def _job(code: str) -> Job:
    return Job(f"/{PATH}", Settings(), data=code.encode())


def judged(code: str) -> Outcome | None:
    """The safe fixes of a program, judged; None where there are none to make."""
    done, left = fixed(code)
    if not done.count:
        return None
    report = Checker(None).source_checked(_job(code), Source(f"/{PATH}", code))
    written = any(finding.code.startswith("GG1") for finding in report.findings)
    wrong = verdict(code, done.after, left, written=written)
    if fixed(done.after)[0].count:
        wrong.append("fixing it again changes it again")
    return Outcome(code, done.after, done.kinds, done.rounds, left, tuple(wrong))


def verdict(before: str, after: str, left: Sequence[str] = (), *, written: bool = True) -> list[str]:
    """What is wrong with a fixed program.

    It may still raise for findings that are left, and for what was never found in the original; then both are
    compared with cloned saves. `written`: False where no write is at fault, so that the original is right as it
    is (some gradients depend on the strides of what is saved, which a clone changes).
    """
    reference = run(before, cloned=written)
    got = run(after, cloned=bool(left))
    if got.error and not left:
        plain = run(before)
        if plain.error[:SAME] == got.error[:SAME]:
            left, got = ("unreported",), run(after, cloned=True)
    if SECOND in reference.error:
        # What the original would give if its graphs were still there.
        reference = run(before, cloned=written, retained=True)
        got = run(after, cloned=bool(left), retained=bool(left))
        if got.error and not reference.error:
            return [f"raises {got.error}"]
        if not reference.error:
            return differences(reference, got, calls_differ=True)
    if reference.error:
        # What torch refuses with cloned saves, too, is no matter of writes, and no fix mends it.
        same = got.error[:SAME] == reference.error[:SAME]
        # Nor is what the very statement meets that the original did not get past: operands of sizes that do not fit.
        same = same or (got.at == reference.at != "" and rule_of(got.error) is None)
        return [f"raises {got.error}"] if got.error and not left and not same else []
    if got.error:
        return [f"raises {got.error}"]
    found = differences(reference, got)
    if found and not left and not differences(reference, run(after, cloned=True)):
        # With cloned saves it is right: another write, never reported, is what spoils it.
        return []
    return found


def batch(seeds: Sequence[int]) -> list[tuple[int, Outcome | NotGrown]]:
    """Grown programs with safe fixes, judged."""
    torch.set_num_threads(1)
    outcomes: list[tuple[int, Outcome | NotGrown]] = []
    for seed in seeds:
        code = grown(seed)
        outcome = code if isinstance(code, NotGrown) else judged(code)
        if outcome is not None:
            outcomes.append((seed, outcome))
    return outcomes


def grown(seed: int) -> str | NotGrown:
    """The program of a seed. Where the generator fails, the others are still judged."""
    from tests.fuzz.generate import program

    try:
        return program(seed)
    except Exception:
        return NotGrown(traceback.format_exc(limit=-3))


def rewrites(seeds: Sequence[int]) -> list[tuple[int, Rewrite | NotGrown]]:
    """In-place forms offered in grown programs whose own writes were undone first, each judged alone."""
    torch.set_num_threads(1)
    found: list[tuple[int, Rewrite | NotGrown]] = []
    for seed in seeds:
        code = grown(seed)
        if isinstance(code, NotGrown):
            found.append((seed, code))
            continue
        source = Source(f"/{PATH}", code)
        text = undone(source, range(1, source.lines.count + 1))
        source = Source(f"/{PATH}", text)
        plans = inplace.rewrites(source, Span(1, 1, source.lines.count + 1, 1))
        right = run(text) if plans else Ran(error="not run")
        if right.error:
            continue
        for plan in plans:
            after = applied(source, api.edits(plan, source) or ())
            got = run(after)
            wrong = [f"raises {got.error}"] if got.error else differences(right, got)
            found.append((seed, Rewrite(plan.kind, text, after, tuple(wrong))))
    return found


def verdicts(programs: Sequence[tuple[str, str, bool]]) -> list[list[str]]:
    """What is wrong with fixed programs: (before, after, whether the fix promises the same numbers)."""
    torch.set_num_threads(1)
    found = []
    for before, after, safe in programs:
        if safe:
            found.append(verdict(before, after))
        else:
            error = run(after).error
            found.append([f"raises {error}"] if error else [])
    return found
