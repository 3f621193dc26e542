"""`python -m tests.runtime [--programs N] [--seed S] [--jobs N] [--quick]`: the monitor against plain torch.

Runs grown programs both ways, prints each on which the two differ, and ends with 1 if there is one
(other lines: if there are many).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.oracle.pool import Died, Pool
from tests.runtime.generated import BATCH, Difference

BATCH_SIZE = 25
SECONDS_A_BATCH = 900.0
OTHER_LINES = 0.005


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument(
        "--seed", type=int, default=None, help="the first one; a new one each time if not given"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="do not ask which lines end an error")
    given = parser.parse_args()
    first = given.seed if given.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {first}", flush=True)
    last = first + given.programs
    batches = [list(range(at, min(at + BATCH_SIZE, last))) for at in range(first, last, BATCH_SIZE)]
    pool = Pool(given.jobs)
    outcomes: Counter[str] = Counter()
    found: list[Difference] = []
    lost = 0
    try:
        with ThreadPoolExecutor(given.jobs) as threads:
            answers = threads.map(
                lambda seeds: pool.call(BATCH, timeout=SECONDS_A_BATCH, seeds=seeds, lines=not given.quick),
                batches,
            )
            for seeds, answer in zip(batches, answers):
                if isinstance(answer, Died):
                    lost += len(seeds)
                    print(
                        f"seeds {seeds[0]} to {seeds[-1]}: {answer.reason} {answer.detail[-300:]}", flush=True
                    )
                    continue
                counts, differences = answer
                outcomes.update(counts)
                found += differences
                for each in differences:
                    print(f"=== {each.name}: {each.what}\n{each.detail}\n{each.text}", flush=True)
    finally:
        pool.close()
    kinds = Counter(each.what for each in found)
    print(f"{given.programs} programs: {dict(outcomes)}; differences {dict(kinds)}; {lost} lost")
    # On lines the judge is not without fault either.
    lines = kinds.pop("other line", 0)
    return 0 if not lost and not kinds and lines <= OTHER_LINES * given.programs else 1


if __name__ == "__main__":
    sys.exit(main())
