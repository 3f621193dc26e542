"""`python -m tests.fixes [--programs N] [--seed S] [--jobs N]`: the safe fixes of grown programs, judged by torch.

Prints each program that a fix spoils, and ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.oracle.pool import Died, Pool

BATCH = 50
SECONDS_A_BATCH = 1800.0
PROGRESS = 500


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fixes", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    pool = Pool(given.jobs)
    last = given.seed + given.programs
    batches = [list(range(at, min(at + BATCH, last))) for at in range(given.seed, last, BATCH)]
    fixed = clean = wrong = lost = 0
    made: Counter[str] = Counter()
    rounds: Counter[int] = Counter()
    try:
        with ThreadPoolExecutor(given.jobs) as threads:
            answers = threads.map(
                lambda seeds: pool.call("tests.fixes.judging:batch", timeout=SECONDS_A_BATCH, seeds=seeds),
                batches,
            )
            for seeds, answer in zip(batches, answers):
                if (seeds[0] - given.seed) % PROGRESS == 0 and seeds[0] > given.seed:
                    print(
                        f"{seeds[0] - given.seed} programs: {fixed} with safe fixes, {wrong} wrong",
                        flush=True,
                    )
                if isinstance(answer, Died):
                    lost += len(seeds)
                    print(
                        f"seeds {seeds[0]} to {seeds[-1]}: {answer.reason} {answer.detail[-200:]}", flush=True
                    )
                    continue
                for seed, outcome in answer:
                    fixed += 1
                    clean += not outcome.left
                    made.update(outcome.kinds)
                    rounds[outcome.rounds] += 1
                    if outcome.wrong:
                        wrong += 1
                        print(f"=== seed {seed}: {'; '.join(outcome.wrong)}\n{outcome.before}")
                        before, after = (text.splitlines() for text in (outcome.before, outcome.after))
                        print("\n".join(difflib.unified_diff(before, after, lineterm="", n=0)), flush=True)
    finally:
        pool.close()
    print(f"fixes made: {made.total()} ({', '.join(f'{kind} {n}' for kind, n in made.most_common())})")
    print(f"programs by rounds: {', '.join(f'{n} in {many}' for many, n in sorted(rounds.items()))}")
    print(
        f"{given.programs} programs, {fixed} with safe fixes, {clean} clean afterwards, {wrong} wrong, {lost} lost"
    )
    return 1 if wrong or lost else 0


if __name__ == "__main__":
    sys.exit(main())
