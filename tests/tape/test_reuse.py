"""An analysis that takes what it can from the one before gives what a fresh one gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source
from gradguard.tape import Analysis, analyse
from tests.tape.analysing import NO_FILES

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = [
    FIXTURES / "inplace" / "modules.py",
    FIXTURES / "graph" / "freed.py",
    FIXTURES / "cases" / "graph" / "02_validation_total_without_guard.py",
    FIXTURES / "cases" / "inplace" / "58_custom_spectral_norm_two_passes.py",
]


def shown(analysis: Analysis) -> list[object]:
    """Everything that a person sees of an analysis."""
    found = sorted(registry.findings(analysis), key=lambda each: each.sort_key)
    return [*found, *analysis.limits]


def edited(text: str, chance: random.Random) -> str:
    """One edit as people make them: a line typed, deleted, doubled, or a word changed."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    kind = chance.choice(["delete", "double", "comment", "half", "number", "undo"])
    if kind == "delete":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "comment":
        lines.insert(at, "# a remark")
    elif kind == "half":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif kind == "number":
        lines[at] = lines[at].replace("1", "2")
    return "\n".join(lines)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_edits_give_what_a_cold_run_gives(path: Path) -> None:
    rows = table.load()
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    text = path.read_text("utf-8")
    source = Source("program.py", text)
    before = analyse(source, rows, NO_FILES)
    for step in range(25):
        text = edited(text, chance) if chance.random() < 0.8 else path.read_text("utf-8")
        source = Source("program.py", text, source)
        before = analyse(source, rows, NO_FILES, before)
        cold = analyse(source, rows, NO_FILES)
        assert shown(before) == shown(cold), f"seed {seed}, step {step}"


def test_what_did_not_change_is_taken() -> None:
    text = (FIXTURES / "inplace" / "modules.py").read_text("utf-8")
    source = Source("program.py", text)
    first = analyse(source, table.load(), NO_FILES)
    last = text.rstrip("\n").split("\n")
    last[-1] += "  # typed"
    again = analyse(Source("program.py", "\n".join(last), source), table.load(), NO_FILES, first)
    taken = [key for key, record in again.records.items() if first.records.get(key) is record]
    assert len(taken) > len(again.records) / 2
