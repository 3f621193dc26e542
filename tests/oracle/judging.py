"""What torch does with a program: raises, corrupts gradients silently, or is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.oracle.pool import Died, Pool, shared_pool

RUN = "tests.oracle.programs:run_recorded"
RELATIVE_TOLERANCE = 1e-5

Outcome = Literal["raises", "silent", "ok", "timeout", "crash"]


@dataclass(frozen=True, slots=True)
class Program:
    """Source text and what runs before it in the same namespace (its lines do not count)."""

    code: str
    prelude: str = ""
    timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class Caught:
    """An error of a backward or grad call, caught by the program or not."""

    type: str
    text: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was seen.

    raises: the plain run ended with `error_type: error`, at `line` of the program (innermost frame).
    silent: it did not, but gradients differ from those of the forward that really ran; `differences` says which.
    ok: neither. timeout, crash: torch gave no answer; `error` holds the last words of the process.
    """

    outcome: Outcome
    error_type: str = ""
    error: str = ""
    line: int | None = None
    differences: tuple[str, ...] = ()
    backward_errors: tuple[Caught, ...] = ()
    gradients: int = 0
    stdout: str = ""


def judge(code: str, *, prelude: str = "", timeout: float = 20.0, pool: Pool | None = None) -> Verdict:
    """Runs the program plainly and with cloned saved tensors, same seed, each run in its own process."""
    pool = pool or shared_pool()
    plain = pool.call(RUN, timeout=timeout, code=code, prelude=prelude, cloned=False)
    if isinstance(plain, Died):
        return _died(plain)
    if plain["raised"] is not None:
        return _raises(plain)
    cloned = pool.call(RUN, timeout=timeout, code=code, prelude=prelude, cloned=True)
    if isinstance(cloned, Died):
        return _died(cloned)
    return _compare(plain, cloned)


def judge_file(path: Path | str, *, timeout: float = 60.0, pool: Pool | None = None) -> Verdict:
    return judge(Path(path).read_text(), timeout=timeout, pool=pool)


def judge_many(programs: Sequence[Program | str], *, pool: Pool | None = None) -> list[Verdict]:
    """Verdicts in the order of `programs`, in parallel where the pool has several workers."""
    pool = pool or shared_pool()
    given = [p if isinstance(p, Program) else Program(p) for p in programs]
    plain = pool.map([_call(p, cloned=False) for p in given])
    alive = [i for i, r in enumerate(plain) if not isinstance(r, Died) and r["raised"] is None]
    cloned = dict(zip(alive, pool.map([_call(given[i], cloned=True) for i in alive])))
    verdicts = []
    for i, result in enumerate(plain):
        if isinstance(result, Died):
            verdicts.append(_died(result))
        elif result["raised"] is not None:
            verdicts.append(_raises(result))
        elif isinstance(cloned[i], Died):
            verdicts.append(_died(cloned[i]))
        else:
            verdicts.append(_compare(result, cloned[i]))
    return verdicts


def _call(program: Program, *, cloned: bool) -> tuple[str, float, dict[str, Any]]:
    return (RUN, program.timeout, {"code": program.code, "prelude": program.prelude, "cloned": cloned})


def _died(death: Died) -> Verdict:
    return Verdict("timeout" if death.reason == "timeout" else "crash", error=death.detail)


def _raises(run: dict[str, Any]) -> Verdict:
    raised = run["raised"]
    return Verdict(
        "raises",
        raised.type,
        raised.text,
        raised.line,
        backward_errors=_backward_errors(run),
        gradients=len(run["gradients"]),
        stdout=run["stdout"],
    )


def _backward_errors(run: dict[str, Any]) -> tuple[Caught, ...]:
    return tuple(Caught(c.type, c.text, c.line) for c in run["caught"])


NO_HOOKS = "don't yet support saved tensor hooks"
"""What `torch.func` says under the hooks that clone: its gradients are compared with none."""


def _compare(plain: dict[str, Any], cloned: dict[str, Any]) -> Verdict:
    """Where the plain run caught an error of backward, the two runs part ways: only what came before is compared."""
    ours, theirs = plain["gradients"], cloned["gradients"]
    differences: list[str] = []
    if not plain["caught"]:
        if cloned["raised"] is not None and NO_HOOKS in cloned["raised"].text:
            return Verdict("ok", gradients=len(ours), stdout=plain["stdout"])
        if cloned["raised"] is not None:
            differences.append(f"raises with cloned saves: {cloned['raised'].text}")
        elif len(ours) != len(theirs):
            differences.append(f"{len(ours)} gradients, {len(theirs)} with cloned saves")
        for (name, got), (_, right) in zip(ours, theirs):
            gap = relative_gap(got, right)
            if gap > tolerance(got):
                differences.append(f"{name}: relative gap {gap:.3g}")
    return Verdict(
        "silent" if differences else "ok",
        differences=tuple(differences),
        backward_errors=_backward_errors(plain),
        gradients=len(ours),
        stdout=plain["stdout"],
    )


def relative_gap(got: Any, right: Any) -> float:
    """Largest difference over the largest magnitude; 0 if both are None, infinite if shapes or NaN differ."""
    import numpy

    if got is None or right is None:
        return 0.0 if got is right else float("inf")
    if got.shape != right.shape:
        return float("inf")
    if got.size == 0:
        return 0.0
    same = (got == right) | ((got != got) & (right != right))
    if same.all():
        return 0.0
    a, b = got[~same], right[~same]
    if not (numpy.isfinite(a).all() and numpy.isfinite(b).all()):
        return float("inf")
    finite = numpy.concatenate([numpy.abs(got[numpy.isfinite(got)]), numpy.abs(right[numpy.isfinite(right)])])
    return float(numpy.abs(a - b).max() / finite.max())


def tolerance(array: Any) -> float:
    return RELATIVE_TOLERANCE if array is None or array.dtype.itemsize >= 4 else 1e-2
