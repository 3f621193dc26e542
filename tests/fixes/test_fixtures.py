"""Every kind of fix on small programs: the expected text, and a program that torch finds right.

`fixtures/fixes/<kind>/<name>.py` is fixed by the first plan of that kind it is offered; `<name>.fixed.py` is
what must come out, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import KINDS, edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.fixes.judging import fixed
from tests.oracle import shared_pool

ROOT = Path(__file__).resolve().parents[2] / "fixtures" / "fixes"
CASES = sorted(path for path in ROOT.rglob("*.py") if not path.name.endswith(".fixed.py"))
FEWEST = 6
MARK = "\ufeff"


def ident(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def expected(path: Path) -> str:
    return read(path.with_suffix(".fixed.py"))


@cache
def plan_of(path: Path) -> FixPlan:
    report = check(Source(path.name, read(path)), Settings())
    assert not report.crash, report.crash
    plans = [plan for finding in report.findings for plan in finding.fixes if plan.kind == path.parent.name]
    assert plans, f"no fix of this kind is offered: {report.findings}"
    return plans[0]


def made(text: str, kind: str) -> str:
    source = Source("program.py", text)
    found = [
        plan for finding in check(source, Settings()).findings for plan in finding.fixes if plan.kind == kind
    ]
    return applied(source, edits(found[0], source) or ())


def test_every_kind_has_its_fixtures() -> None:
    have = Counter(path.parent.name for path in CASES)
    offered = set(KINDS) - {"make-in-place", "add-inplace"}
    assert set(have) == offered
    assert {kind: count for kind, count in have.items() if count < FEWEST} == {}


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_the_text_is_as_expected(path: Path) -> None:
    assert made(read(path), path.parent.name) == expected(path)


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_line_ends_and_mark_are_kept(path: Path) -> None:
    text, wanted = read(path), expected(path)
    if "\r" not in text:
        for ending in ("\r\n", "\r"):
            assert made(text.replace("\n", ending), path.parent.name) == wanted.replace("\n", ending)
    assert made(MARK + text, path.parent.name) == MARK + wanted


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_no_finding_is_left(path: Path) -> None:
    left = check(Source(path.name, expected(path)), Settings())
    assert {finding.code for finding in left.findings} == set()


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_fixing_everything_ends_and_is_idempotent(path: Path) -> None:
    done, _ = fixed(read(path), unsafe=True)
    again, _ = fixed(done.after, unsafe=True)
    assert again.count == 0
    assert again.after == done.after


@pytest.fixture(scope="module")
def verdicts() -> dict[Path, list[str]]:
    pairs = [
        (read(path), expected(path), plan_of(path).applicability is Applicability.SAFE) for path in CASES
    ]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=600, programs=pairs)
    return dict(zip(CASES, answers))


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_torch_finds_the_fixed_program_right(path: Path, verdicts: dict[Path, list[str]]) -> None:
    assert verdicts[path] == []
