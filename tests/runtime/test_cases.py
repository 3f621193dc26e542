"""The monitor reports every recorded case at its lines, and says nothing about the clean twins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.oracle import judge
from tests.oracle.pool import Died
from tests.runtime.watching import watch_file

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
# `retain_graph=True` that nothing needs, in twins that are clean in what they are twins of.
NEEDLESS = {
    "38_sharpness_two_step_same_loss_ok.py": {36},
    "40_single_scale_generator_inner_loop_ok.py": {34, 40},
}


def load(family: str) -> list[dict]:
    manifest = (CASES / family / "manifest.jsonl").read_text().splitlines()
    return [{"family": family, **json.loads(line)} for line in manifest]


def lines_of(expected: dict) -> set[int]:
    return {expected["line"], *expected.get("alt_lines", [])}


def never_reached(case: dict, expected: dict) -> bool:
    """The program ends by an error at another line of the same code, before this one runs."""
    if case["outcome"] != "raises" or expected["code"] not in ("GG102", "GG103", "GG107"):
        return False
    return any(e["code"] == expected["code"] and e["line"] < expected["line"] for e in case["expect"])


@pytest.mark.parametrize("case", load("inplace") + load("graph"), ids=lambda c: f"{c['family']}/{c['file']}")
def test_case(case):
    watched = watch_file(CASES / case["family"] / case["file"])
    assert not isinstance(watched, Died), watched
    assert not watched.troubles
    found = watched.lines
    roles = [e for e in case["expect"] if "role" in e]
    for expected in case["expect"]:
        if never_reached(case, expected):
            continue
        here = {(line, expected["code"]) for line in lines_of(expected)}
        if "role" in expected:
            # Cause and raising line of a carried state: one of the two is asked for.
            here |= {
                (line, e["code"]) for e in roles for line in lines_of(e) if e["code"] == expected["code"]
            }
        assert found & here, (expected, watched.findings)
    asked = {(line, e["code"]) for e in case["expect"] for line in lines_of(e)}
    tolerated = {(e["line"], e["code"]) for e in case.get("tolerate", [])}
    needless = {(line, "GG206") for line in NEEDLESS.get(case["file"], ())}
    assert found - asked - tolerated == needless


@pytest.mark.parametrize("name", NEEDLESS)
def test_needless_retain_graph_is_needless(name):
    path = CASES / "inplace" / name
    source = path.read_text()
    assert (
        judge(source.replace("retain_graph=True", "retain_graph=False")).outcome
        == judge(source).outcome
        == "ok"
    )


@pytest.mark.parametrize("case", load("inplace") + load("graph"), ids=lambda c: f"{c['family']}/{c['file']}")
def test_light_mode_sees_what_happens_at_the_start(case):
    watched = watch_file(CASES / case["family"] / case["file"], light=True)
    assert not isinstance(watched, Died), watched
    assert not watched.troubles
    if case["outcome"] == "raises" and case["family"] == "inplace":
        assert watched.findings
    if case["outcome"] == "ok":
        assert not {code for _, code in watched.lines if code in ("GG101", "GG105", "GG106", "GG203")}
