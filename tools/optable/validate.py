"""Proves the shipped op data against live torch: `python -m tools.optable.validate`.

Two things are checked: that the committed file is what the generator gives here, and that every row holds when torch
runs fresh samples, written to and run backward as a user would.

Some samples crash torch itself. That says nothing of the row: its name is printed, and it is asked again with the samples
of `KNOWN_GOOD`, which torch survives for every row. A row with which torch crashes there, too, counts as wrong: nobody
can say that it holds. So does one whose check raises, which torch has no part in.
"""

from __future__ import annotations

import argparse
import difflib
import random
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch

from gradguard.ops.table import Table, load
from tools.optable import generate, generate_run, observe_modules
from tools.optable.validate_rows import Verdict, check_module, check_op

CALLS = 6
"""Calls tried for each row."""

KNOWN_GOOD = 1
"""A seed whose samples torch survives."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.optable.validate", description=__doc__)
    parser.add_argument("--seed", type=int, help="seed of the samples (default: a fresh one, printed)")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: %(default)s)")
    parser.add_argument("--rows-only", action="store_true", help="do not generate the data again")
    parser.add_argument("--sample", type=int, metavar="N", help="only N rows, which the seed chooses")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls for each row (default: %(default)s)")
    options = parser.parse_args(argv)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"torch {torch.__version__}, seed {seed}")
    changes: list[str] = []
    names = [n for n in table().names() if options.only in n and checkable(n)]
    if options.sample is not None:
        names = random.Random(seed).sample(names, min(options.sample, len(names)))
    elif not options.rows_only and not options.only:
        changes = _changed_by_the_generator(options.jobs)
    wrong = rows_hold(names, seed, options.jobs, options.calls)
    for line in changes:
        print(line)
    return 1 if wrong or changes else 0


def _changed_by_the_generator(jobs: int) -> list[str]:
    """What to say of the difference between the committed data and newly generated data; empty when there is none."""
    version = ".".join(torch.__version__.split(".")[:2])
    path = generate.DATA / f"{version}.jsonl"
    committed = path.read_text(encoding="utf-8")
    made = generate.text_for(version, jobs)
    if made == committed:
        print(f"{path.name} is what the generator gives")
        return []
    changes = list(
        difflib.unified_diff(
            committed.splitlines(), made.splitlines(), "committed", "generated", lineterm="", n=0
        )
    )
    return [
        f"{path.name} differs from what the generator gives, {len(changes)} lines:",
        *(line[:300] for line in changes[:40]),
    ]


def rows_hold(
    names: Sequence[str],
    seed: int,
    jobs: int,
    calls: int,
    ask: Callable[[str, int, int], Verdict] | None = None,
) -> int:
    """The number of rows that do not hold; prints which, and what could not be asked. `ask` is `check` but for tests."""
    ask = ask or check
    wrong = claims = confirmed = 0
    why_not: list[str] = []
    said: list[str] = []
    crashed: list[str] = []

    def count(name: str, verdict: Verdict) -> None:
        nonlocal wrong, claims, confirmed
        claims += verdict.claims
        confirmed += bool(verdict.claims and not verdict.wrong)
        if verdict.why_not:
            why_not.append(f"{name}: {verdict.why_not}")
        said.extend(f"{name}: {text}" for text in verdict.wrong[:5])
        wrong += bool(verdict.wrong)

    def refuse(name: str, error: str) -> None:
        nonlocal wrong
        said.append(f"{name}: not checked: {error.splitlines()[0][:160]}")
        wrong += 1

    for name, verdict, error in generate_run.over(names, lambda name: ask(name, seed, calls), jobs):
        if verdict is not None:
            count(name, verdict)
        elif isinstance(error, generate_run.Lost):
            said.append(f"{name}: {error} with seed {seed}; asked again with seed {KNOWN_GOOD}")
            crashed.append(name)
        else:
            refuse(name, error)
    for name, verdict, error in generate_run.over(crashed, lambda name: ask(name, KNOWN_GOOD, CALLS), 1):
        if verdict is not None:
            count(name, verdict)
        else:
            refuse(name, error)
    for text in why_not:
        print(f"  {text}")
    for text in said:
        print(text)
    print(
        f"{confirmed} of {len(names)} rows confirmed ({claims} statements), {wrong} wrong, {len(why_not)} not observable (above)"
    )
    return wrong


@lru_cache(maxsize=1)
def table() -> Table:
    """The shipped table of the torch that is installed."""
    return load(".".join(torch.__version__.split(".")[:2]))


def checkable(name: str) -> bool:
    """Whether `check` knows how to call it."""
    return name in generate.callables() or name in observe_modules.classes()


def check(name: str, seed: int, calls: int) -> Verdict:
    """Checks one row with the samples that the seed and the name choose."""
    chooser = random.Random(f"{seed}:{name}")
    op = table().op(name)
    if op is not None:
        return check_op(op, generate.callables()[name], chooser, calls)
    row = table().module(name)
    if row is None:
        raise LookupError(name)
    return check_module(row, chooser, calls)


if __name__ == "__main__":
    sys.exit(main())
