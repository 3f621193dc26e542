"""Whatever a repository holds: a check ends, tells what it did not read, and touches nothing.

`GRADGUARD_HOSTILE=40` tries forty times as many, `GRADGUARD_HOSTILE_SEED=7` others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.arena import Arena
from tests.hostile.invariants import holds
from tests.hostile.repositories import INGREDIENTS, git_that_runs_programs, growing_program, plant
from tests.hostile.share import seeds

FORMATS = ("text", "json", "github", "sarif", "gitlab")


@pytest.mark.parametrize("seed", seeds(5))
def test_check(seed: int, tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), seed)
    before = made.arena.snapshot()
    form = made.random.choice(FORMATS)
    more = made.random.choice(((), ("--jobs=2",), ("--verbose",), ("--all",), ("--no-cache",)))
    holds(made, made.arena.run("check", f"--format={form}", *more, "."), before)
    again = made.arena.run("check", "--format=json", ".")
    holds(made, again, before)
    assert made.arena.run("check", "--format=json", ".").out == again.out


@pytest.mark.parametrize("seed", seeds(4, 4_000))
def test_programs_that_grow(seed: int, tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), seed, 0, 0)
    for _ in range(3):
        growing_program(made)
    texts = [(made.root / name).read_text() for name in made.mistakes if (made.root / name).exists()]
    made.planted.append("\n".join(texts))
    before = made.arena.snapshot()
    holds(made, made.arena.run("check", "--format=json", "."), before)


@pytest.mark.parametrize("seed", seeds(2, 1_000))
def test_fix_changes_what_it_was_given_and_nothing_else(seed: int, tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), seed)
    before = made.arena.snapshot()
    holds(made, made.arena.run("check", "--diff", "--unsafe-fixes", "."), before)
    done = made.arena.run("check", "--fix", "--unsafe-fixes", ".")
    own = frozenset(name.rpartition("/")[2] for name in before if name.endswith(".py"))
    holds(made, done, before, own - {"kept.py"})


@pytest.mark.parametrize("seed", seeds(2, 2_000))
def test_baseline(seed: int, tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), seed)
    before = made.arena.snapshot()
    written = frozenset({"baseline.json"})
    holds(made, made.arena.run("check", "--write-baseline", "baseline.json", "."), before, written)
    holds(made, made.arena.run("check", "--baseline", "baseline.json", "."), before, written)


def test_changed_since_runs_no_program_of_the_repository(tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), 0, 0, 0)
    git_that_runs_programs(made)
    before = made.arena.snapshot()
    done = made.arena.run("check", "--changed-since", "HEAD", ".")
    assert done.code == 2  # there is no commit yet
    holds(made, done, before)


@pytest.mark.parametrize("seed", seeds(5, 5_000))
def test_one_ingredient_alone(seed: int, tmp_path: Path) -> None:
    ingredient = INGREDIENTS[seed % len(INGREDIENTS)]
    made = plant(Arena(tmp_path), seed, 0, 0)
    made.planted.append(ingredient.__name__)
    ingredient(made)
    before = made.arena.snapshot()
    holds(made, made.arena.run("check", "--format=json", "."), before)
    holds(made, made.arena.run("check", f"--format={made.random.choice(FORMATS)}", "."), before)
