"""The engine against cases from public reports, each with a twin that looks as risky and is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.analysing import findings

CASES = Path(__file__).parents[2] / "fixtures" / "cases"


def _rows() -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for family in ("inplace", "graph"):
        for line in (CASES / family / "manifest.jsonl").read_text("utf-8").splitlines():
            rows.append((family, json.loads(line)))
    return rows


_ROWS = _rows()


def test_both_kinds_are_there() -> None:
    assert sum(bool(row["expect"]) for _, row in _ROWS) > 50
    assert sum(not row["expect"] for _, row in _ROWS) > 50


@pytest.mark.parametrize(
    ("family", "row"), _ROWS, ids=[f"{family}-{row['file'][:-3]}" for family, row in _ROWS]
)
def test_expected_lines_are_found_and_no_others_are_loud(family: str, row: dict[str, Any]) -> None:
    found = findings((CASES / family / row["file"]).read_text("utf-8"))
    places = {(each.span.line, each.code) for each in found}
    loud = {
        (each.span.line, each.code)
        for each in found
        if each.severity.rank <= 1 and each.code != "GG120" and each.certainty != "possible"
    }
    expected = row["expect"]
    primary = [each["line"] for each in expected if each.get("role") == "primary"]
    allowed = {(each["line"], each["code"]) for each in row.get("tolerate") or []}
    missing = []
    for each in expected:
        lines = [each["line"], *(each.get("alt_lines") or [])]
        allowed |= {(line, each["code"]) for line in lines}
        if each.get("role") == "primary" and any(one.get("role") == "cause" for one in expected):
            continue
        # The line that carries a state over, or the backward that raises, is as good.
        good = lines + (primary if each.get("role") == "cause" else [])
        if not any((line, each["code"]) in places for line in good):
            missing.append((each["line"], each["code"]))
    assert not missing
    assert not loud - allowed
