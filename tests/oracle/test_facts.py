"""Every recorded fact is what torch does today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.oracle import Program, judge_many

FACTS = Path(__file__).resolve().parents[2] / "fixtures" / "facts.jsonl"


def load() -> tuple[str, list[dict[str, str]]]:
    header, *facts = (json.loads(line) for line in FACTS.read_text().splitlines())
    return header["prelude"], facts


@pytest.fixture(scope="module")
def verdicts():
    prelude, facts = load()
    return judge_many([Program(f["code"], prelude) for f in facts])


@pytest.mark.parametrize("number", range(len(load()[1])))
def test_fact(verdicts, number):
    fact, verdict = load()[1][number], verdicts[number]
    assert verdict.outcome == fact["outcome"], (fact["code"], verdict)
    assert verdict.error.startswith(fact["message"])
