"""The engine against what torch was measured to do with small programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradguard.engine.domain.events import (
    BrokenGraph,
    Event,
    InferenceSaved,
    RefusedWrite,
    SavedTensorMutated,
    SecondBackward,
)
from tests.engine.analysing import analysed

FACTS = Path(__file__).parents[2] / "fixtures" / "facts.jsonl"
_HEAD, *_ROWS = [json.loads(line) for line in FACTS.read_text("utf-8").splitlines()]


def raises(event: Event) -> bool:
    """Whether torch raises where this happens."""
    if isinstance(event, SavedTensorMutated):
        return event.write.counted
    if isinstance(event, BrokenGraph):
        return event.raises
    return isinstance(event, (RefusedWrite, SecondBackward, InferenceSaved))


def outcome(text: str) -> str:
    """`raises`, `silent`, `ok`, or `raises?` where the engine is not certain of what torch is."""
    events = analysed(text).events
    raising = [event for event in events if raises(event)]
    if any(event.certain for event in raising):
        return "raises"
    if raising:
        return "raises?"
    silent = [event for event in events if isinstance(event, SavedTensorMutated) and not event.write.counted]
    return "silent" if silent else "ok"


def test_there_are_facts() -> None:
    assert len(_ROWS) >= 98
    assert {row["outcome"] for row in _ROWS} == {"raises", "silent", "ok"}


@pytest.mark.parametrize("row", _ROWS, ids=[str(number) for number in range(1, len(_ROWS) + 1)])
def test_the_engine_agrees_with_torch(row: dict[str, Any]) -> None:
    assert outcome(_HEAD["prelude"] + row["code"]) == row["outcome"]
