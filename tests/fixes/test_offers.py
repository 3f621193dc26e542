"""What is offered besides fixes: in-place forms and ignore comments, on small programs, byte for byte.

`fixtures/offers/<kind>/<name>.py` becomes `<name>.fixed.py` by the first offer of that kind.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Span
from gradguard.fixes.api import KINDS, edits
from gradguard.fixes.edit import Edit, applied
from gradguard.ide import inplace
from gradguard.ide.ignore import ignoring
from gradguard.source.text import Source
from tests.fixes.test_fixtures import FEWEST, MARK, expected, ident, read
from tests.oracle import shared_pool

ROOT = Path(__file__).resolve().parents[2] / "fixtures" / "offers"
CASES = sorted(path for path in ROOT.rglob("*.py") if not path.name.endswith(".fixed.py"))
FORMS = {"make-in-place", "add-inplace"}
COMMENTS = {"ignore", "ignore-with-reason", "extend-ignore"}


def made(text: str, kind: str) -> str:
    """The text with the first offer of a kind."""
    source = Source("program.py", text)
    if kind in FORMS:
        everywhere = Span(1, 1, source.lines.count, 1000)
        plan = next(plan for plan in inplace.rewrites(source, everywhere) if plan.kind == kind)
        return applied(source, edits(plan, source) or ())
    finding = next(
        each for each in check(source, Settings()).findings if each.code not in ("GG901", "GG301", "GG302")
    )
    found = ignoring(finding, source, "reason" if kind == "ignore-with-reason" else "")
    assert found is not None
    return applied(source, [Edit(*found)])


def of(*kinds: str) -> list[Path]:
    """The cases of some kinds."""
    return [path for path in CASES if path.parent.name in kinds]


def test_every_kind_has_its_fixtures() -> None:
    have = Counter(path.parent.name for path in CASES)
    assert set(have) == FORMS | COMMENTS
    assert set(KINDS) >= FORMS
    assert {kind: count for kind, count in have.items() if count < FEWEST} == {}


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_the_text_is_as_expected(path: Path) -> None:
    text, wanted, kind = read(path), expected(path), path.parent.name
    assert made(text, kind) == wanted
    assert made(MARK + text.replace("\n", "\r\n"), kind) == MARK + wanted.replace("\n", "\r\n")


@pytest.mark.parametrize("path", of(*COMMENTS), ids=ident)
def test_a_comment_silences_and_changes_nothing(path: Path) -> None:
    before, after = read(path), expected(path)
    assert ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    left = {finding.code for finding in check(Source("program.py", after), Settings()).findings}
    # A rule that the comment named before, and that finds nothing there, is still reported as idle.
    assert left <= ({"GG901"} if path.parent.name == "extend-ignore" else set())


@pytest.mark.parametrize("path", of(*FORMS), ids=ident)
def test_an_in_place_form_brings_no_finding(path: Path) -> None:
    assert check(Source("program.py", expected(path)), Settings()).findings == ()


def test_torch_finds_in_place_forms_right() -> None:
    paths = of(*FORMS)
    programs = [(read(path), expected(path), True) for path in paths]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=programs)
    assert {ident(path): found for path, found in zip(paths, answers) if found} == {}
