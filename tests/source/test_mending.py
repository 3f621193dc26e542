"""What is read while a text is typed: the last good texts of its broken pieces stand in, and nothing else changes."""

from __future__ import annotations

import ast
import os
import pathlib
import random
from collections.abc import Callable, Sequence

import pytest

from gradguard.source.notebook import join
from gradguard.source.text import BOM, Source
from tests.source.typist import Typist

SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Multiplies the length of random tests."""
FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
PROGRAMS = [
    FIXTURES / "inplace" / "asked_for_gradients.py",
    FIXTURES / "graph" / "freed.py",
    FIXTURES / "cases" / "graph" / "02_validation_total_without_guard.py",
]
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "marked": lambda text: BOM + text,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "old": lambda text: text.replace("\n", "\r"),
}


def dump(source: Source) -> str:
    return ast.dump(source.tree, include_attributes=True)


def shape(source: Source) -> list[object]:
    return [(c.line, c.offset, c.text, [(p.line, p.text, p.errors) for p in c.pieces]) for c in source.chunks]


def agrees(read: Source, typed: str, breaks: Sequence[int] = ()) -> None:
    """What holds of every version."""
    cold, alone = Source("x.py", read.text, breaks=read.breaks), Source("x.py", typed, breaks=breaks)
    assert (read.typed, len(read.breaks)) == (typed, len(breaks))
    assert (shape(read), dump(read)) == (shape(cold), dump(cold)), typed
    if not alone.errors:
        assert read.text == typed
    if read.places is None:
        assert read.text == typed
        return
    found = {line: read.places.read(line) for line in range(1, alone.lines.count + 1)}
    there = [line for line in found.values() if line is not None]
    assert there == sorted(set(there)), typed
    for line, other in found.items():
        assert other is not None or alone.is_broken(line), typed
        assert other is None or (alone.line(line) == read.line(other) and read.places.typed(other) == line), (
            typed
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_read_is_read_as_if_it_was_opened(path: pathlib.Path, form: str) -> None:
    typist = Typist(FORMS[form](path.read_text("utf-8")), random.Random(f"{path.stem} {form}"))
    read = Source("x.py", typist.text)
    for _ in range(40 * SHARE):
        read = Source.edited("x.py", typist.edited(), read)
        agrees(read, typist.text)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_same_of_notebooks(path: pathlib.Path) -> None:
    chance = random.Random(path.stem)
    cells, past, read = path.read_text("utf-8").split("\n\n\n"), [], None
    for _ in range(60 * SHARE):
        past.append(list(cells))
        at, kind = chance.randrange(len(cells) + 1), chance.random()
        if kind < 0.6 and at < len(cells):
            cells[at] = Typist(cells[at], chance).edited()
        elif kind < 0.7:
            cells.insert(at, chance.choice(["", "x = (", "import torch", "    y = '''"]))
        elif kind < 0.8:
            cells[at : at + 1] = []
        elif kind < 0.9:
            cells[at : at + 2] = ["\n".join(cells[at : at + 2])]
        else:
            cells = list(chance.choice(past))
        joined = join(cells)
        read = Source.edited("x.py", joined.text, read, joined.starts[1:])
        agrees(read, joined.text, joined.starts[1:])


F = "def f(x):\n    a = 1\n    b = 2\n    return a\n\n"
G = "def g(x):\n    return x\n"
C = "class C:\n    def m(self):\n        return 1\n\n    def n(self):\n        return 2\n\n"
WHOLE = "whole"


@pytest.mark.parametrize(
    ("good", "typed", "read"),
    [
        (F + G, F.replace("b = 2", "b = (2") + G, WHOLE),
        (F + G, "def f(x):\n    b = (\n\n" + G, WHOLE),
        (F + G, F.replace("def f", "de f") + G, WHOLE),
        (F + G, F.replace("b = 2", '"""') + G, WHOLE),
        (F + G, F.replace("return a", '"""') + "g(1)\n" + G.replace("def", '"""def'), F + G),
        # One line that changed all of it: what stood in its place, had its name or its first word.
        ("x = 1\ny = 2\nz = 3\n", "x = 1\nw = (\nz = 3\n", WHOLE),
        ("x = 1\ny = 2\nz = 3\n", "x = (\ny = [\nz = 3\n", WHOLE),
        ("x = 1\ny = 2\n", "x = (\ny = [\n", WHOLE),
        ("x = 1\ny = 2\n", "x = 1\nnew = 3\ny = (\n", "x = 1\nnew = 3\ny = 2\n"),
        ("def f(x): return x\n" + G, "def f(x): return (\n" + G, WHOLE),
        # Members of a class stand in for members.
        (C + G, C.replace("return 1", "return (1") + G, WHOLE),
        (C + G, C.replace("return 1", "return (1").replace("return 2", "return 3") + G, C.replace("return 2", "return 3") + G),
        (C, C.replace("class C", "class D").replace("return 1", "return (1"), C.replace("class C", "class D")),
        (C + G, C.replace("class C:", "class C(:") + G, WHOLE),
        # A decorator that was torn off is no piece of its own.
        ("@d\n" + F, "@d\n" + F.replace("b = 2", "b = (\n@e\n2)"), WHOLE),
        # What is gone does not come back, neither deleted nor as it was before it was edited.
        (F + "y = 1\n" + G, F.replace("b = 2", "b = (") + G, F + G),
        (F + G, F.replace("a = 1", "a = 7") + G.replace("return x", "return ("), F.replace("a = 1", "a = 7") + G),
        # Never good: a copy, a new statement, a whole new text.
        (F, F + F.replace("b = 2", "b = (2"), F + F.replace("b = 2", "b = (2")),
        (F + G, F + "x = (\n" + G, F + "x = (\n" + G),
        # What never was good is read as it is typed.
        (F + "x = (\n" + G, F + "x = ((\n" + G, F + "x = ((\n" + G),
        (F.replace("b = 2", "b = (") + G, F.replace("b = 2", "b = ((") + G, F.replace("b = 2", "b = ((") + G),
        # What was the end of the text is followed by more.
        ("x = 1\ny = 2", "x = 1\ny = (\nz = 3", "x = 1\ny = 2\nz = 3"),
    ],
)  # fmt: skip
def test_what_stands_in(good: str, typed: str, read: str) -> None:
    found = Source.edited("x.py", typed, Source("x.py", good))
    assert found.text == (good if read is WHOLE else read)
    agrees(found, typed)


def test_reading_the_same_text_again_changes_nothing() -> None:
    good = Source("x.py", "@d\n" + F + G)
    first = Source.edited("x.py", "@d\n" + F.replace("b = 2", "b = (\n@e\n2)") + G, good)
    again = Source.edited("x.py", first.typed, first)
    other = Source.edited("x.py", first.typed.replace("@e", "@ee"), again)
    assert first.text == again.text == other.text == "@d\n" + F + G


def test_good_texts_live_on_while_others_are_edited() -> None:
    read = Source("x.py", F + C + G)
    for typed in (
        F.replace("b = 2", "b = (") + C + G,
        "\n\n" + F.replace("b = 2", "b = ((") + C.replace("return 2", "return (") + G,
        F.replace("b = 2", "b = (1 +") + C.replace("return 2", "return (") + G.replace("x\n", "x + 1\n"),
    ):
        read = Source.edited("x.py", typed, read)
    assert read.text == F + C + G.replace("x\n", "x + 1\n")
    assert Source.edited("x.py", F + C + G, read).places is None


def test_typing_in_a_broken_piece_reads_nothing_again() -> None:
    good = Source("x.py", F + C + G)
    first = Source.edited("x.py", F.replace("b = 2", "b = (2") + C + G, good)
    nodes = list(first.tree.body)
    second = Source.edited("x.py", F.replace("b = 2", "b = (2 +\n") + C + G, first)
    assert second.tree is first.tree
    assert [node is other for node, other in zip(second.tree.body, nodes)] == [True] * 3


def test_an_edit_beside_a_broken_piece_keeps_the_nodes_of_what_stands_in() -> None:
    first = Source.edited(
        "x.py",
        F.replace("b = 2", "b = (2") + C.replace("return 1", "return (") + G,
        Source("x.py", F + C + G),
    )
    f, c, _ = first.tree.body
    assert isinstance(c, ast.ClassDef)
    members = list(c.body)
    second = Source.edited("x.py", "z = 1\n" + first.typed + "w = 1\n", first)
    assert second.text == "z = 1\n" + F + C + G + "w = 1\n"
    assert second.tree.body[1] is f
    again = second.tree.body[2]
    assert isinstance(again, ast.ClassDef)
    assert [one is other for one, other in zip(again.body, members)] == [True, True]


def test_two_broken_pieces_far_apart_do_not_have_what_lies_between_scanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gradguard.source import pieces

    between = "".join(f"def h{number}(x):\n    return x\n" for number in range(200))
    read = Source("x.py", F + between + G)
    read = Source.edited("x.py", F.replace("b = 2", "b = (2") + between + G, read)
    scanned: list[int] = []
    scan = pieces.boundaries

    def counted(text: str, begin: int = 0, **options: object) -> object:
        for end in scan(text, begin, **options):  # type: ignore[arg-type]
            scanned.append(end)
            yield end

    monkeypatch.setattr(pieces, "boundaries", counted)
    typed = F.replace("b = 2", "b = (2") + between + G.replace("return x", "return (x")
    assert Source.edited("x.py", typed, read).text == F + between + G
    assert len(scanned) < 10
