"""Generated programs, run by plain torch and under the monitor in one worker, side by side."""

from __future__ import annotations

import io
import sys
import types
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

BATCH = "tests.runtime.generated:compare_batch"
# What the monitor calls a fault that plain torch tells by the first code.
ALSO = {"GG101": {"GG105", "GG106", "GG108"}, "GG106": {"GG101", "GG105"}, "GG203": {"GG206", "GG106"}}
FAULTS = {f"GG{number}" for number in (101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 112, 203)}


@dataclass(frozen=True, slots=True)
class Difference:
    """A program on which the monitor and torch disagree: `what` is a short kind, `detail` tells the rest."""

    seed: int
    what: str
    detail: str
    text: str


def compare_batch(seeds: list[int], lines: bool) -> tuple[dict[str, int], list[Difference]]:
    """How many programs ended how, and those on which the two disagree. `lines` also checks the lines (slower)."""
    from tests.fuzz.culprit import culprits
    from tests.fuzz.generate import program
    from tests.fuzz.verdict import TooLong, judge

    outcomes: dict[str, int] = {}
    differences = []
    for seed in seeds:
        text = program(seed)
        verdict = judge(text)
        outcomes[verdict.outcome] = outcomes.get(verdict.outcome, 0) + 1
        if verdict.outcome == "discard":
            continue
        plain = plainly(text)
        watched, findings, troubles = watched_run(text)

        def differ(what: str, detail: object, seed: int = seed, text: str = text) -> None:
            differences.append(Difference(seed, what, str(detail), text))

        if troubles:
            differ("trouble", troubles[0])
        for name in ("error", "stdout", "gradients", "values"):
            if plain[name] != watched[name]:
                differ(f"other {name}", f"{plain[name]!r:.500}\n{watched[name]!r:.500}")
        faults = [(line, code) for line, code in findings if code in FAULTS]
        wrong = [f for f in faults if f[1] != "GG112"]
        if verdict.outcome == "ok":
            wrong = [f for f in wrong if f[1] not in ("GG108", "GG110")]
            if any(code == "GG105" for _, code in wrong) and saved_changes(text):
                # Backward did read changed values; this time the gradient came out the same.
                wrong = [f for f in wrong if f[1] != "GG105"]
            if wrong:
                differ("false alarm", wrong)
        if verdict.outcome == "silent" and not any(code == "GG105" for _, code in faults):
            differ("missed silent", findings)
        if verdict.outcome == "raises":
            codes = {verdict.rule, *ALSO.get(verdict.rule, ())}
            named = [line for line, code in findings if code in codes]
            if not named:
                differ("missed raise", (verdict, findings))
            elif lines:
                try:
                    right = culprits(text, verdict)
                    together = _gone_without(text, verdict, set(named))
                except TooLong:
                    # A variant of the program has no end, or the machine is busy: no second opinion then.
                    continue
                if together:
                    # No one line is the fault alone: without all the named ones the error goes.
                    right = set()
                if verdict.rule in ("GG203", "GG205"):
                    # The related places name the backward; the finding stands where a tensor is carried over or cut.
                    right = set()
                if right and not set(named) & right:
                    differ("other line", (verdict, sorted(right), findings))
    return outcomes, differences


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

    from gradguard.runtime.session import Session

    path = str(Path(PATH).absolute())
    session = Session(always_user=(path,))
    session.frames.ignore(str(Path(__file__).parents[1]))
    result = _run(text, session)
    findings = [(f.span.line, f.code) for f in session.results()[0]]
    return result, findings, tuple(session.troubles)


def _run(text: str, session: Any = None) -> dict[str, Any]:
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
    if session is not None:
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
        if session is not None:
            session.start(sys._getframe())
        raised: BaseException | None = None
        try:
            exec(compiled, main.__dict__)
        except Exception as caught:
            raised = caught
            told = describe(caught, path)
            error = f"{told.type} at line {told.line}: {told.text}"
        finally:
            if session is not None:
                session.stop(raised, raised.__traceback__ if raised is not None else None)
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
