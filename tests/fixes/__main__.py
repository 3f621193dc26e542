"""`python -m tests.fixes [--in-place] [--programs N] [--seed S] [--jobs N]`: fixes of grown programs, judged by torch.

The safe fixes of each program, all made; with `--in-place` the in-place forms that are offered in it, each made
alone. Prints each program that is spoilt and each seed that the generator failed at, and ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fixes.outcomes import NotGrown, Outcome, Rewrite
from tests.oracle.pool import Died, Pool

BATCH = 250
SECONDS_A_BATCH = 1800.0
PROGRESS = 500


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fixes", description=__doc__)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    tally = _Rewrites() if given.in_place else _Fixes()
    lost = 0
    for seeds, answer in _answers(given):
        if (seeds[0] - given.seed) % PROGRESS == 0 and seeds[0] > given.seed:
            print(f"{seeds[0] - given.seed} programs: {tally.judged} judged, {tally.wrong} wrong", flush=True)
        if isinstance(answer, Died):
            lost += len(seeds)
            print(f"seeds {seeds[0]} to {seeds[-1]}: {answer.reason} {answer.detail[-200:]}", flush=True)
            continue
        for seed, one in answer:
            if isinstance(one, NotGrown):
                lost += 1
                print(f"=== seed {seed}: the generator failed\n{one.words}", flush=True)
                continue
            tally.add(one)
            if one.wrong:
                print(f"=== seed {seed}: {'; '.join(one.wrong)}\n{one.before}")
                lines = difflib.unified_diff(
                    one.before.splitlines(), one.after.splitlines(), lineterm="", n=0
                )
                print("\n".join(lines), flush=True)
    print("\n".join(tally.said()))
    print(f"{given.programs} programs, {tally.judged} judged, {tally.wrong} wrong, {lost} lost")
    return 1 if tally.wrong or lost else 0


def _answers(given: argparse.Namespace) -> Iterator[tuple[list[int], Any]]:
    """Seeds and what a worker says of them, in order."""
    pool = Pool(given.jobs)
    function = f"tests.fixes.judging:{'rewrites' if given.in_place else 'batch'}"
    last = given.seed + given.programs
    batches = [list(range(at, min(at + BATCH, last))) for at in range(given.seed, last, BATCH)]

    def ask(seeds: Sequence[int]) -> Any:
        return pool.call(function, timeout=SECONDS_A_BATCH, seeds=seeds)

    try:
        with ThreadPoolExecutor(given.jobs) as threads:
            yield from zip(batches, threads.map(ask, batches))
    finally:
        pool.close()


class _Fixes:
    """What the fixes of all programs came to."""

    def __init__(self) -> None:
        self.judged = self.wrong = self.clean = 0
        self.made: Counter[str] = Counter()
        self.rounds: Counter[int] = Counter()

    def add(self, one: Outcome) -> None:
        """Count a program."""
        self.judged += 1
        self.wrong += bool(one.wrong)
        self.clean += not one.left
        self.made.update(one.kinds)
        self.rounds[one.rounds] += 1

    def said(self) -> list[str]:
        """Lines of the report."""
        rounds = ", ".join(f"{count} in {many}" for many, count in sorted(self.rounds.items()))
        return [
            f"safe fixes made: {self.made.total()} ({_listed(self.made)})",
            f"programs with fixes by rounds: {rounds}; {self.clean} are clean afterwards",
        ]


class _Rewrites:
    """What the in-place forms came to."""

    def __init__(self) -> None:
        self.judged = self.wrong = 0
        self.made: Counter[str] = Counter()

    def add(self, one: Rewrite) -> None:
        """Count an offer."""
        self.judged += 1
        self.wrong += bool(one.wrong)
        self.made[one.kind] += 1

    def said(self) -> list[str]:
        """Lines of the report."""
        return [f"in-place forms offered: {self.judged} ({_listed(self.made)})"]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
