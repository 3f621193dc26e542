"""`python -m tests.fuzz.run --programs N [--loops N] [--reads N] [--cuts N] [--needless N] [--seed S] [--jobs 2] [--shrink] [--save]`

Grows programs, lets torch judge them and the checker read them, and prints where they differ. Ends with 1 if
a wanted share is not reached.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.compare import Case, Tally
from tests.fuzz.cuts import CutCase
from tests.fuzz.loop_programs import PASSES
from tests.fuzz.loops import LoopCase
from tests.fuzz.needless import NeedlessCase
from tests.fuzz.reads import ReadCase
from tests.oracle.pool import Died, Pool

BATCH = 100
SECONDS_A_BATCH = 1200.0
SECONDS_TO_SHRINK = 240.0


@dataclass(slots=True)
class Result:
    """All that a run found."""

    tally: Tally = field(default_factory=Tally)
    differing: list[Case] = field(default_factory=list)
    lost: list[tuple[int, int, str]] = field(default_factory=list)
    """Batches that gave no answer: first seed, number of seeds, last words."""


def run(first: int, programs: int, jobs: int, pool: Pool) -> Result:
    """Programs of the seeds first, first + 1, ..."""
    result = Result()
    batches = [
        list(range(s, min(s + BATCH, first + programs))) for s in range(first, first + programs, BATCH)
    ]
    with ThreadPoolExecutor(jobs) as threads:
        for answer, seeds in zip(threads.map(lambda seeds: _batch(seeds, pool), batches), batches):
            if isinstance(answer, Died):
                result.lost.append((seeds[0], len(seeds), f"{answer.reason}: {answer.detail[-300:]}"))
                continue
            for case in answer:
                result.tally.add(case)
                if case.disagreement:
                    result.differing.append(case)
    return result


def _batch(seeds: list[int], pool: Pool) -> list[Case] | Died:
    try:
        answer: list[Case] | Died = pool.call(
            "tests.fuzz.compare:batch", timeout=SECONDS_A_BATCH, seeds=seeds
        )
    except RuntimeError as error:
        return Died("failed", str(error))
    return answer


def run_loops(first: int, programs: int, jobs: int, pool: Pool) -> list[LoopCase]:
    """Loop programs of the seeds first, first + 1, ...; raises RuntimeError if a batch gives no answer."""
    return [
        case
        for cases in _batches("tests.fuzz.loops:loop_batch", first, programs, jobs, pool)
        for case in cases
    ]


def _batches(function: str, first: int, programs: int, jobs: int, pool: Pool) -> list[Any]:
    """What the function says of the seeds, a few at a time."""
    seeds = range(first, first + programs)
    batches = [list(seeds[at : at + BATCH // 4]) for at in range(0, programs, BATCH // 4)]

    def measured(batch: list[int]) -> Any:
        answer = pool.call(function, timeout=SECONDS_A_BATCH, seeds=batch)
        if isinstance(answer, Died):
            raise RuntimeError(f"{answer.reason}: {answer.detail}")
        return answer

    with ThreadPoolExecutor(jobs) as threads:
        return list(threads.map(measured, batches))


def run_reads(first: int, programs: int, jobs: int, pool: Pool) -> list[ReadCase]:
    """Programs that read the host, of the seeds first, first + 1, ...; raises RuntimeError without an answer."""
    return [
        case
        for cases in _batches("tests.fuzz.reads:read_batch", first, programs, jobs, pool)
        for case in cases
    ]


def run_cuts(first: int, programs: int, jobs: int, pool: Pool) -> list[CutCase]:
    """Programs that may cut off what trains, of the seeds first, first + 1, ...; raises RuntimeError without an answer."""
    return [
        case for cases in _batches("tests.fuzz.cuts:cut_batch", first, programs, jobs, pool) for case in cases
    ]


def run_needless(first: int, programs: int, jobs: int, pool: Pool) -> list[NeedlessCase]:
    """Programs with graphs that may serve nothing, of the seeds first, first + 1, ...; raises RuntimeError without an answer."""
    return [
        case
        for cases in _batches("tests.fuzz.needless:needless_batch", first, programs, jobs, pool)
        for case in cases
    ]


def needless_report(cases: list[NeedlessCase]) -> str:
    """Figures over programs with graphs that may serve nothing, and every line where torch and the checker differ."""
    judged = [case for case in cases if not case.error]
    wanted = [
        f"{sum(bool(getattr(case, name)) for case in judged)} {words}"
        for name, words in (("must", "evaluate with a graph"), ("target", "ask a target for one"), ("needless", "retain one"), ("leaks", "leak a doubled one"))
    ]  # fmt: skip
    differing = [(case, line, what) for case in judged for line, what in case.disagreements]
    report = [
        f"{len(cases)} programs with graphs: {', '.join(wanted)}, {len(differing)} differ, {len(cases) - len(judged)} discarded"
    ]
    report += [
        f"seed {case.seed} line {line}: {what}\n{case.code}{case.crash[-300:]}"
        for case, line, what in differing
    ]
    return "\n".join(report)


def cut_report(cases: list[CutCase]) -> str:
    """Figures over programs that may cut off what trains, and every one where torch and the checker differ."""
    starving = sum(case.cut and case.starved > 0 for case in cases)
    differing = [case for case in cases if case.disagreement]
    report = [
        f"{len(cases)} programs with cuts: {starving} leave parameters untrained, {len(differing)} differ"
    ]
    report += [f"seed {case.seed} line {case.line}: {case.disagreement}\n{case.code}" for case in differing]
    return "\n".join(report)


def read_report(cases: list[ReadCase]) -> str:
    """Figures over programs that read the host, and every line where torch and the checker differ."""
    judged = [case for case in cases if not case.error]
    lines = sum(len(case.lines) for case in judged)
    reading = sum(case.counts.get(line, 0) > 0 for case in judged for line in case.lines)
    differing = [(case, line, what) for case in judged for line, what in case.disagreements]
    report = [
        f"{len(cases)} programs with host reads: {lines} lines judged, {reading} read, {len(differing)} differ, "
        f"{len(cases) - len(judged)} discarded"
    ]
    report += [
        f"seed {case.seed} line {line}: {what}: {case.code.splitlines()[line - 1].strip() if line else case.crash[-300:]}"
        for case, line, what in differing
    ]
    return "\n".join(report)


def loop_report(cases: list[LoopCase]) -> str:
    """Figures over loop programs, and the shortest program of each kind of difference."""
    judged = [c for c in cases if not c.error]
    leaking = [c for c in judged if c.grows and not c.program.used]
    fast = sum(c.fast for c in leaking)
    missed = sum(c.disagreement.startswith(("leak not", "leak told", "crash")) for c in leaking)
    counts = Counter(c.disagreement for c in judged if c.disagreement)
    lines = [
        f"{len(cases)} loops: {len(leaking)} leak ({fast} activations), {sum(c.program.used for c in judged)} summed for a "
        f"later backward, {len(cases) - len(judged)} discarded",
        f"leaks found {100 * (1 - missed / max(1, len(leaking))):.2f} %; differences {dict(counts)}",
    ]
    groups: dict[tuple[str, str], list[LoopCase]] = {}
    for case in judged:
        if case.disagreement:
            groups.setdefault((case.disagreement, case.program.label), []).append(case)
    for (what, label), found in sorted(groups.items(), key=lambda item: -len(item[1])):
        case = min(found, key=lambda c: len(c.program.code))
        lines.append(
            f"\n== {len(found)} x {what} | {label}   seed {case.seed}, kept at {sorted(case.program.lines)}, nodes {case.nodes[-PASSES:]}"
        )
        lines += [f"{n:3} {line}" for n, line in enumerate(case.program.code.rstrip().split("\n"), 1)]
        lines += [
            f"checker: {f.severity.value} {f.code} line {f.line}: {f.message[:160]}" for f in case.findings
        ]
        lines += [case.crash[-600:]] if case.crash else []
    return "\n".join(lines)


def kinds(differing: list[Case]) -> Iterator[tuple[str, list[Case]]]:
    """Disagreements by what they have in common, the commonest first; the shortest program of each first."""
    groups: dict[str, list[Case]] = {}
    for case in differing:
        groups.setdefault(case.signature, []).append(case)
    for signature, cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield signature, sorted(cases, key=lambda c: len(c.code))


def shown(case: Case) -> str:
    """The program with line numbers, torch's verdict and the checker's answer."""
    lines = [f"{n:3} {line}" for n, line in enumerate(case.code.rstrip("\n").split("\n"), 1)]
    lines.append(
        f"torch:   {case.outcome} {case.rule} line {case.line}, culprits {sorted(case.culprits)} {case.error[:160]}"
    )
    lines += [
        f"checker: {f.severity.value} {f.code} line {f.line}: {f.message[:160]}"
        for f in case.findings
        if f.counts
    ]
    if case.crash:
        lines.append(case.crash[-600:])
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="first seed; a new one each time if not given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--shrink", action="store_true", help="print a small program for each kind of disagreement"
    )
    parser.add_argument("--save", action="store_true", help="with --shrink: write fixtures")
    parser.add_argument("--kinds", type=int, default=15, help="how many kinds of disagreement to show")
    parser.add_argument("--loops", type=int, default=0, help="how many training loops to measure as well")
    parser.add_argument("--reads", type=int, default=0, help="how many programs with host reads as well")
    parser.add_argument("--cuts", type=int, default=0, help="how many programs that may cut off what trains")
    parser.add_argument(
        "--needless", type=int, default=0, help="how many programs whose graphs may serve nothing as well"
    )
    options = parser.parse_args(arguments)
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {first}", flush=True)
    pool = Pool(options.jobs)
    started = time.monotonic()
    try:
        result = run(first, options.programs, options.jobs, pool)
        print(result.tally.report())
        print(f"{options.programs / (time.monotonic() - started):.0f} programs a second")
        if options.loops:
            print(loop_report(run_loops(first, options.loops, options.jobs, pool)))
        if options.reads:
            print(read_report(run_reads(first, options.reads, options.jobs, pool)))
        if options.cuts:
            print(cut_report(run_cuts(first, options.cuts, options.jobs, pool)))
        if options.needless:
            print(needless_report(run_needless(first, options.needless, options.jobs, pool)))
        for seed, count, words in result.lost:
            print(f"no answer for {count} seeds from {seed}: {words}")
        for number, (signature, cases) in enumerate(kinds(result.differing)):
            print(f"\n== {len(cases)} x {signature}   seeds {[c.seed for c in cases[:5]]}")
            if number < options.kinds and options.shrink:
                small = pool.call("tests.fuzz.shrink:shrunk", timeout=SECONDS_TO_SHRINK, case=cases[0])
                small = cases[0] if isinstance(small, Died) else small
                print(shown(small), flush=True)
                if options.save and small.outcome in ("ok", "raises", "silent"):
                    from tests.fuzz.shrink import save

                    print(f"written to {save(small)}")
    finally:
        pool.close()
    return 0 if accepted(result) else 1


def accepted(result: Result) -> bool:
    """Whether the wanted shares are reached."""
    tally = result.tally
    raising, right = tally.outcomes["raises"], tally.outcomes["ok"]
    differ = tally.disagreements
    return (
        differ["false error"] == 0
        and differ["crash"] == 0
        and not result.lost
        and differ["raise not found"] <= 0.005 * raising
        and tally.at_culprit >= 0.99 * raising
        and differ["false warning"] <= 0.01 * right
        and differ["silent not found"] <= 0.05 * tally.outcomes["silent"]
    )


if __name__ == "__main__":
    sys.exit(main())
