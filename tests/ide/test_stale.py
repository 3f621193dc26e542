"""What is shown of a text that does not parse follows from the text and the good texts of its broken pieces."""

from __future__ import annotations

import os
import pathlib
import random

import pytest

from gradguard.check.settings import DEFAULTS
from gradguard.check.workspace import EMPTY, ReadingWorkspace
from gradguard.findings import Finding
from gradguard.ide.actions import What, offers
from gradguard.ide.analysis import Analyser, Analysis, analyse, analysis
from gradguard.ide.wording import Wording
from gradguard.source.text import Source
from tests.ide.stale import expected, shown
from tests.lsp.toy_server import toy
from tests.source.typist import Typist

SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Multiplies the length of random tests."""
FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
PROGRAMS = sorted(
    [
        *(FIXTURES / "demo").glob("*.py"),
        *(FIXTURES / "inplace").glob("*.py"),
        *(FIXTURES / "graph").glob("*.py"),
        *(FIXTURES / "cases").glob("*/0*.py"),
    ]
)


class Editing:
    """A text from version to version, as the server has it."""

    def __init__(self, text: str, analyser: Analyser = toy) -> None:
        self.analyser = analyser
        self.source = Source("program.py", text)
        self.found = analysis(self.source, DEFAULTS, EMPTY, analyser)

    def typed(self, text: str) -> Analysis:
        """The answer for the next version."""
        self.source = Source.edited("program.py", text, self.source)
        self.found = analysis(self.source, DEFAULTS, EMPTY, self.analyser, self.found)
        return self.found

    def replaced(self, old: str, new: str) -> list[str]:
        """What is shown after an edit: code and line."""
        assert old in self.source.typed
        return lines(self.typed(self.source.typed.replace(old, new)))


def lines(found: Analysis) -> list[str]:
    """Line and what is said there."""
    text = Source("program.py", found.source.typed)
    return [f"{text.line(each.span.line).strip()} | {each.message}" for each in shown(found)]


@pytest.mark.parametrize("number", range(4))
def test_random_editing_shows_what_a_cold_run_of_what_is_read_shows(number: int) -> None:
    broken = 0
    for path in PROGRAMS[number :: max(4, len(PROGRAMS) // SHARE)]:
        chance = random.Random(f"{path.name} {SHARE}")
        typist = Typist(path.read_text("utf-8"), chance)
        editing = Editing(typist.text, analyse)
        for _ in range(25 * min(SHARE, 4)):
            found = editing.typed(typist.edited())
            assert found.outcome.report.crash == ""
            assert shown(found) == expected(found.source, analyse), typist.text
            broken += not found.source.whole
    assert broken > 5


@pytest.mark.parametrize("number", range(3))
def test_while_one_piece_is_typed_nothing_new_is_shown_and_nothing_twice(number: int) -> None:
    """Random editing inside of a function whose bracket stays open."""
    path = FIXTURES / "inplace" / "aliases.py"
    good = path.read_text("utf-8")
    editing = Editing(good, analyse)
    before = [(each.code, each.message, text_of(each, good)) for each in shown(editing.found)]
    heads = [at for at in range(len(good)) if good.startswith("\ndef ", at) and "_bad(" in good[at : at + 60]]
    start = good.index(":\n", heads[number]) + 2
    end = good.index("\n\n\n", start)
    chance = random.Random(number)
    typist = Typist(good[start:end], chance, ["(", "[", "x", "    ", "\n    ", "y.add_(1)", ",", "é", "#"])
    for _ in range(40 * SHARE):
        body = "\n".join("    " + line.strip() for line in typist.edited().split("\n"))
        typed = good[:start] + "    opened = (\n" + body + good[end:]
        found = editing.typed(typed)
        if found.source.whole:  # closed by chance
            editing.typed(good)
            continue
        assert found.source.text == good
        now = [(each.code, each.message, text_of(each, typed)) for each in shown(found)]
        assert not [each for each in set(now) if now.count(each) > before.count(each)]
    assert shown(editing.typed(good)) == shown(Editing(good, analyse).found)


def text_of(finding: Finding, text: str) -> str:
    """The lines of a finding."""
    source = Source("program.py", text)
    return "\n".join(source.line(line) for line in range(finding.span.line, finding.span.end_line + 1))


TEXT = """\
import torch

def f(x):
    boom(x)
    boom(
        y
    )
    hint(x)
    z = 1

def g(x):
    boom(x)
"""
"""With the toy analyser: `boom(x)` is found, and explained at `x`."""


def test_a_line_that_was_typed_over_has_no_finding_until_it_is_as_it_was() -> None:
    editing = Editing(TEXT)
    assert editing.replaced("z = 1", "z = (1")[0] == "boom(x) | boom of x"
    assert editing.replaced("\n    boom(x)\n    boom", "\n    bom(x)\n    boom") == [
        "boom( | boom of y",
        "hint(x) | hint of x",
        "boom(x) | boom of x",
    ]
    assert editing.replaced("bom(x)", "boom(x)")[0] == "boom(x) | boom of x"


def test_findings_whose_lines_are_gone_do_not_pile_up_on_another() -> None:
    editing = Editing(TEXT)
    start, end = TEXT.index("om(x)\n    boom("), TEXT.index("nt(x)")
    assert lines(editing.typed(TEXT[:start] + "(" + TEXT[end:])) == ["boom(x) | boom of x"]
    assert lines(editing.typed(TEXT[:start] + "((" + TEXT[end:])) == ["boom(x) | boom of x"]


def test_a_statement_of_several_lines_counts_as_a_whole() -> None:
    editing = Editing(TEXT)
    editing.replaced("z = 1", "z = (1")
    found = editing.replaced("        y\n    )", "        y,\n    )")
    assert "boom( | boom of y" not in found
    assert "hint(x) | hint of x" in found


def test_findings_move_with_their_lines() -> None:
    editing = Editing(TEXT)
    editing.replaced("z = 1", "z = (1")
    before = lines(editing.found)
    assert editing.replaced("def f(x):\n", "def f(x, w):\n    # more\n    new = 2\n") == before
    assert editing.replaced("import torch\n", "import torch\nimport os\n") == before
    assert editing.replaced("    # more\n    new = 2\n", "") == before


def test_typing_in_a_broken_piece_shows_nothing_new() -> None:
    editing = Editing(TEXT)
    before = lines(editing.found)
    assert editing.replaced("z = 1", "z = (1\n    boom(z)\n    boom(x)") == before


def test_a_copy_that_was_never_good_shows_nothing() -> None:
    editing = Editing(TEXT)
    before = lines(editing.found)
    copy = TEXT[TEXT.index("def f") : TEXT.index("def g")].replace("z = 1", "z = (")
    assert editing.replaced("def g(x)", copy + "def g(x)") == before


def test_a_closed_and_opened_text_has_no_past() -> None:
    editing = Editing(TEXT)
    editing.replaced("z = 1", "z = (1")
    cold = analysis(Source("program.py", editing.source.typed), DEFAULTS, EMPTY, toy)
    assert lines(cold) == ["boom(x) | boom of x"]
    assert lines(editing.found) != lines(cold)


def test_an_answer_without_trees_is_the_same_and_goes_on_as_well() -> None:
    editing = Editing(TEXT)
    before = editing.replaced("z = 1", "z = (1\n    more = (")
    resting = editing.found.without_tape()
    assert lines(resting) == before
    editing.found, editing.source = resting, resting.source
    assert lines(editing.typed(resting.source.typed)) == before
    assert editing.replaced("hint(x)", "hnt(x)") == [each for each in before if not each.startswith("hint")]


SHARED = """\
import torch
w = torch.rand(3, requires_grad=True)

def make():
    return w.exp()

y = make()
y.add_(1)
y.sum().backward()
"""


def test_a_finding_elsewhere_stays_and_points_at_nothing_that_changed() -> None:
    editing = Editing(SHARED, analyse)
    (before,) = shown(editing.found)
    assert [each.span.line for each in before.related][:1] == [5]
    editing.replaced("    return w.exp()", "    more = 1\n    return w.exp()\n    (")
    (moved,) = shown(editing.found)
    assert (moved.message, moved.span.line) == (before.message, 10)
    assert [each.span.line for each in moved.related] == [
        6,
        *(each.span.line + 2 for each in before.related[1:]),
    ]
    editing.replaced("return w.exp()", "return w.ex()")
    (left,) = shown(editing.found)
    assert (left.message, left.span.line) == (before.message, 10)
    assert [each.span.line for each in left.related] == [each.span.line for each in moved.related[1:]]
    assert left.fixes == moved.fixes


def test_fixes_and_ignores_are_offered_in_pieces_that_parse_alone() -> None:
    editing = Editing(TEXT)
    editing.replaced("z = 1", "z = (1")
    found = editing.found
    broken, whole = found.findings[0], found.findings[-1]
    assert offers(found, found.findings, broken.span, Wording("en")) == []
    assert {each.what for each in offers(found, found.findings, whole.span, Wording("en"))} == {
        What.EXPLAIN,
        What.SHOW_ALL,
        What.TURN_OFF,
        What.IGNORE,
    }


def test_what_another_file_says_stands_on_lines_that_were_typed() -> None:
    """`main` is analysed while `other`, which it imports, is typed."""
    other = "import torch\n\ndef helped(x):\n    y = x.exp()\n    y += 1\n    return y\n"
    main = (
        "import torch\nfrom other import helped\nhelped(torch.rand(3, requires_grad=True)).sum().backward()\n"
    )
    typed = Source("other.py", other)

    class Files(ReadingWorkspace):
        def source(self, path: str) -> Source | None:
            return typed

    files = Files(lambda path: path == "other.py", lambda path: other)

    def away() -> list[tuple[int, list[int]]]:
        found = analysis(Source("main.py", main), DEFAULTS, files, analyse)
        assert [each.path for each in found.elsewhere] == ["other.py"] * len(found.elsewhere)
        return [
            (each.span.line, [one.span.line for one in each.related if one.path == "other.py"])
            for each in found.elsewhere
        ]

    assert away() == [(5, [4])]
    typed = Source.edited("other.py", other.replace("def", "\n\ndef").replace("return y", "return (y"), typed)
    assert away() == [(7, [6])]
    typed = Source.edited("other.py", typed.typed.replace("x.exp()", "x.ex()"), typed)
    assert away() == []
