"""Proves the shipped op data against live torch: `python -m gradguard.ops.validate`.

Two things are checked: that the committed file is what the generator gives here, and that every row holds when torch
runs fresh samples, written to and run backward as a user would.
"""

from __future__ import annotations

import argparse
import difflib
import random
import secrets
import sys
from functools import lru_cache

import torch

from gradguard.ops import generate, generate_run, observe_modules
from gradguard.ops.table import Table, load
from gradguard.ops.validate_rows import Verdict, check_module, check_op

CALLS = 6
"""Calls tried for each row."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradguard.ops.validate", description=__doc__)
    parser.add_argument("--seed", type=int, help="seed of the samples (default: a fresh one, printed)")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: %(default)s)")
    parser.add_argument("--rows-only", action="store_true", help="do not generate the data again")
    options = parser.parse_args(argv)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"torch {torch.__version__}, seed {seed}")
    changes: list[str] = []
    if not options.rows_only and not options.only:
        changes = _changed_by_the_generator(options.jobs)
    wrong = _rows_hold(options.only, seed, options.jobs)
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


def _rows_hold(only: str, seed: int, jobs: int) -> int:
    names = [n for n in table().names() if only in n and checkable(n)]
    _SEED[0] = seed
    wrong = claims = confirmed = 0
    why_not: list[str] = []
    said: list[str] = []
    for name, verdict, error in generate_run.over(names, check, jobs):
        if verdict is None:
            said.append(f"{name}: not checked: {error.splitlines()[0][:160]}")
            continue
        claims += verdict.claims
        confirmed += bool(verdict.claims and not verdict.wrong)
        if verdict.why_not:
            why_not.append(f"{name}: {verdict.why_not}")
        said += [f"{name}: {text}" for text in verdict.wrong[:5]]
        wrong += bool(verdict.wrong)
    for text in why_not:
        print(f"  {text}")
    for text in said:
        print(text)
    print(
        f"{confirmed} of {len(names)} rows confirmed ({claims} statements), {wrong} wrong, {len(why_not)} not observable (above)"
    )
    return wrong


_SEED = [0]


@lru_cache(maxsize=1)
def table() -> Table:
    """The shipped table of the torch that is installed."""
    return load(".".join(torch.__version__.split(".")[:2]))


def checkable(name: str) -> bool:
    """Whether `check` knows how to call it."""
    return name in generate.callables() or name in observe_modules.classes()


def check(name: str) -> Verdict:
    """Checks one row with the samples that the seed and the name choose."""
    chooser = random.Random(f"{_SEED[0]}:{name}")
    op = table().op(name)
    if op is not None:
        return check_op(op, generate.callables()[name], chooser, CALLS)
    row = table().module(name)
    if row is None:
        raise LookupError(name)
    return check_module(row, chooser, CALLS)


if __name__ == "__main__":
    sys.exit(main())
