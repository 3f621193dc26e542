"""`python -m tests.fuzz.run [--programs N] [--loops N] [--reads N] [--cuts N] [--needless N] [--seed S] [--jobs 2] [--shrink] [--save]`

Grows programs of each kind, lets torch judge them and the checker read them, and prints where they differ. Ends with 1
if a share that is asked of any kind is not reached, or programs gave no answer; the last lines say which.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.fuzz.asked import missed
from tests.fuzz.compare import Case
from tests.fuzz.kinds import KINDS, Kind
from tests.oracle.pool import Died, Pool

SECONDS_A_BATCH = 1200.0
SECONDS_TO_SHRINK = 240.0


class Worker(Protocol):
    """Calls a function in a process that has torch, as a `Pool` does."""

    def call(self, function: str, *, timeout: float, **arguments: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Answers:
    """What torch and the checker say of programs of one kind."""

    kind: Kind
    cases: list[Any] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Batches that gave no answer: number of seeds, first seed, last words."""

    @property
    def misses(self) -> list[str]:
        """What was asked of them and is not so."""
        return [*map(str, missed(self.kind.asked(self.cases))), *self.lost]


def run(kind: Kind, first: int, programs: int, jobs: int, pool: Worker) -> Answers:
    """The programs of the seeds first, first + 1, ..."""
    answers = Answers(kind)
    seeds = range(first, first + programs)
    batches = [list(seeds[at : at + kind.seeds]) for at in range(0, programs, kind.seeds)]

    def examined(batch: list[int]) -> Any:
        try:
            return pool.call(kind.batch, timeout=SECONDS_A_BATCH, seeds=batch)
        except RuntimeError as error:
            return Died("failed", str(error))

    with ThreadPoolExecutor(jobs) as threads:
        for batch, answer in zip(batches, threads.map(examined, batches)):
            if isinstance(answer, Died):
                words = f"{answer.reason}: {answer.detail[-300:]}"
                answers.lost.append(f"no answer for {len(batch)} {kind.name} from seed {batch[0]}: {words}")
            else:
                answers.cases.extend(answer)
    return answers


def alike(cases: Iterable[Case]) -> Iterator[tuple[str, list[Case]]]:
    """Disagreements by what they have in common, the commonest first; the shortest program of each first."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        if case.disagreement:
            groups.setdefault(case.signature, []).append(case)
    for signature, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield signature, sorted(found, key=lambda c: len(c.code))


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


def differences(cases: Iterable[Case], most: int, shrink: bool, save: bool, pool: Worker) -> None:
    """Print what programs differ in; with `shrink` a small program of the first `most`, with `save` as fixtures."""
    for number, (signature, found) in enumerate(alike(cases)):
        print(f"\n== {len(found)} x {signature}   seeds {[c.seed for c in found[:5]]}")
        if number < most and shrink:
            small = pool.call("tests.fuzz.shrink:shrunk", timeout=SECONDS_TO_SHRINK, case=found[0])
            small = found[0] if isinstance(small, Died) else small
            print(shown(small), flush=True)
            if save and small.outcome in ("ok", "raises", "silent"):
                from tests.fuzz.shrink import save as save_fixture

                print(f"written to {save_fixture(small)}")


def main(arguments: list[str] | None = None, pool: Worker | None = None) -> int:
    """Run what was asked for; 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    for kind in KINDS:
        count = 1000 if kind is KINDS[0] else 0
        parser.add_argument(
            f"--{kind.name}",
            type=int,
            default=count,
            metavar="N",
            help=f"how many {kind.what} (default: {count})",
        )
    parser.add_argument("--seed", type=int, default=None, help="first seed; a new one each time if not given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--shrink", action="store_true", help="print a small program for each kind of disagreement"
    )
    parser.add_argument("--save", action="store_true", help="with --shrink: write fixtures")
    parser.add_argument("--kinds", type=int, default=15, help="how many kinds of disagreement to shrink")
    options = parser.parse_args(arguments)
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {first}", flush=True)
    owned = Pool(options.jobs) if pool is None else None
    worker = owned or pool
    assert worker
    misses: list[str] = []
    try:
        for kind in KINDS:
            count = getattr(options, kind.name)
            if not count:
                continue
            started = time.monotonic()
            answers = run(kind, first, count, options.jobs, worker)
            print(kind.report(answers.cases))
            if kind is KINDS[0]:
                differences(answers.cases, options.kinds, options.shrink, options.save, worker)
            print(f"{count / (time.monotonic() - started):.1f} {kind.name} a second\n", flush=True)
            misses += answers.misses
    finally:
        if owned:
            owned.close()
    for miss in misses:
        print(f"not as asked: {miss}")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
