"""Programs run by plain torch and under the monitor in one worker, side by side."""

from __future__ import annotations

import io
import sys
import types
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

BATCH = "tests.runtime.generated:compare_batch"
TEXTS = "tests.runtime.generated:compare_texts"
# What the monitor calls a fault that plain torch tells by the first code.
ALSO = {
    "GG101": {"GG105", "GG106", "GG108"},
    "GG103": {"GG109"},
    "GG106": {"GG101", "GG105"},
    "GG203": {"GG206", "GG106"},
}
FAULTS = {f"GG{number}" for number in (101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 112, 203)}

# Name, text, and what must be found in it: (line, code).
Program = tuple[str, str, set[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A program on which the monitor and torch disagree: `what` is a short kind, `detail` tells the rest."""

    name: str
    what: str
    detail: str
    text: str


def compare_batch(seeds: list[int], lines: bool) -> tuple[dict[str, int], list[Difference]]:
    """`compare_texts` on the programs grown from the seeds."""
    from tests.fuzz.generate import program

    return compare_texts([(f"seed {seed}", program(seed), set()) for seed in seeds], lines)


def compare_texts(programs: list[Program], lines: bool) -> tuple[dict[str, int], list[Difference]]:
    """How many programs ended how, and those on which the two disagree.

    `lines` also asks which lines end an error (slower).
    """
    import torch

    outcomes: dict[str, int] = {}
    differences = []
    # The first call imports for longer than a program may run; so does the first optimizer.
    torch.func.grad(torch.sum)(torch.ones(1))
    for name, text, wanted in programs:
        outcome, found = _compared(text, wanted, lines)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        differences += [Difference(name, what, str(detail), text) for what, detail in found]
    return outcomes, differences


def _compared(text: str, wanted: set[tuple[int, str]], lines: bool) -> tuple[str, list[tuple[str, object]]]:
    """What plain torch does with a program, and where the watched run or its findings differ."""
    from tests.fuzz.verdict import judge

    verdict = judge(text)
    if verdict.outcome == "discard":
        return verdict.outcome, []
    plain = plainly(text)
    watched, findings, troubles = watched_run(text)
    differences: list[tuple[str, object]] = [("trouble", trouble) for trouble in troubles[:1]]
    for name in ("error", "stdout", "gradients", "values"):
        # What changes from run to run, such as an address in a packed tensor, says nothing.
        if plain[name] != watched[name] and plain[name] == plainly(text)[name]:
            differences.append((f"other {name}", f"{plain[name]!r:.500}\n{watched[name]!r:.500}"))
    faults = [(line, code) for line, code in findings if code in FAULTS]
    if verdict.outcome == "ok":
        # What a mark says the program itself asserts where cloned saves do not show it, as of attributes of a `ctx`.
        wrong = [f for f in faults if f[1] not in ("GG108", "GG110", "GG112") and f not in wanted]
        if any(code == "GG105" for _, code in wrong) and saved_changes(text):
            # Backward did read changed values; this time the gradient came out the same.
            wrong = [f for f in wrong if f[1] != "GG105"]
        if wrong:
            differences.append(("false alarm", wrong))
    if verdict.outcome == "silent" and not any(code == "GG105" for _, code in faults):
        # A program that catches an error goes on where one with copies has none to catch.
        if "number of gradients" not in verdict.error or not faults:
            differences.append(("missed silent", findings))
    if verdict.outcome == "raises":
        codes = {verdict.rule, *ALSO.get(verdict.rule, ())}
        named = {line for line, code in findings if code in codes}
        if not named:
            differences.append(("missed raise", (verdict, findings)))
        elif lines and (right := _right_lines(text, verdict, named)) and not named & right:
            differences.append(("other line", (verdict, sorted(right), findings)))
    missing = {
        (n, code) for n, code in wanted if not any((n, c) in findings for c in (code, *ALSO.get(code, ())))
    }
    if missing:
        differences.append(("missed mark", (sorted(missing), findings)))
    return verdict.outcome, differences


def _right_lines(text: str, verdict: Any, named: set[int]) -> set[int]:
    """Lines on which a finding is right; empty if there is no second opinion."""
    from tests.fuzz.culprit import culprits, needed
    from tests.fuzz.verdict import TooLong

    if verdict.rule in ("GG203", "GG205"):
        # The related places name the backward; the finding stands where a tensor is carried over or cut.
        return set()
    try:
        # No one line may be the fault alone: without all the named ones the error goes, or one of them must be there
        # for it.
        if _gone_without(text, verdict, named) or needed(text, verdict, named):
            return set()
        return culprits(text, verdict)
    except TooLong:
        # A variant of the program has no end, or the machine is busy.
        return set()


def _gone_without(text: str, verdict: Any, named: set[int]) -> bool:
    from tests.fuzz.culprit import Program

    program = Program(text)
    return program.gone([s for s in program.writers() if s.lineno in named], verdict)


def saved_changes(text: str) -> bool:
    """Whether backward reads a saved tensor whose values are not those it was saved with. Looked at by torch alone."""
    import torch

    changed = []

    def pack(tensor: torch.Tensor) -> Any:
        with torch.no_grad():
            return tensor, tensor.detach().clone()

    def unpack(held: Any) -> torch.Tensor:
        now, then = held
        with torch.no_grad():
            same = (now == then) | ((now != now) & (then != then))
            changed.append(now.shape != then.shape or not bool(same.all()))
        return now

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        _run(text)
    return any(changed)


def plainly(text: str) -> dict[str, Any]:
    return _run(text)


def watched_run(text: str) -> tuple[dict[str, Any], list[tuple[int, str]], tuple[str, ...]]:
    """The run, findings as (line, code), and failures of the monitor itself."""
    from pathlib import Path

    from tests.fuzz.verdict import PATH

    from gradguard.runtime.watched_run import WatchedRun

    path = str(Path(PATH).absolute())
    run = WatchedRun(always_user=(path,))
    run.frames.ignore(str(Path(__file__).parents[1]))
    result = _run(text, run)
    findings = [(f.span.line, f.code) for f in run.results()[0]]
    return result, findings, tuple(run.troubles)


def _run(text: str, run: Any = None) -> dict[str, Any]:
    """One run in this process, everything it computed as bytes."""
    import linecache
    import random
    from pathlib import Path

    import numpy
    import torch
    from tests.fuzz.verdict import PATH
    from tests.oracle.programs import describe

    path = str(Path(PATH).absolute())
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    if run is not None:
        from gradguard.runtime import lines

        lines.file.cache_clear()
    torch.default_generator.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    main = types.ModuleType("__main__")
    out = io.StringIO()
    error = ""
    compiled = compile(text, path, "exec")
    with redirect_stdout(out), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if run is not None:
            run.start(sys._getframe())
        raised: BaseException | None = None
        try:
            exec(compiled, main.__dict__)
        except Exception as caught:
            raised = caught
            told = describe(caught, path)
            # Below a dispatch mode `reshape` makes its view by another operator, whose name torch puts into words.
            error = f"{told.type} at line {told.line}: {told.text.replace('ReshapeAlias', 'View')}"
        finally:
            if run is not None:
                run.stop(raised)
            torch.set_grad_enabled(True)
    values = {k: v for k, v in main.__dict__.items() if isinstance(v, torch.Tensor)}
    gradients = {name: _bytes(value, "grad") for name, value in values.items()}
    for name, value in main.__dict__.items():
        if isinstance(value, torch.nn.Module):
            for number, parameter in enumerate(value.parameters()):
                gradients[f"{name}[{number}]"] = _bytes(parameter, "grad")
                values[f"{name}[{number}]"] = parameter
    return {
        "error": error,
        "stdout": out.getvalue(),
        "gradients": gradients,
        "values": {name: _bytes(value) for name, value in values.items()},
    }


def _bytes(tensor: Any, attribute: str = "") -> Any:
    """Values or gradient, bit by bit; the error where torch refuses, as for a view broken by a write."""
    from tests.oracle.programs import as_array

    try:
        if attribute and not tensor.is_leaf:
            return None
        array = as_array(tensor.grad if attribute else tensor)
    except RuntimeError as error:
        return str(error)
    return None if array is None else (array.shape, array.tobytes())
