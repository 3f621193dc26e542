"""A text that is edited in parts is the text that is edited as a whole."""

from __future__ import annotations

import random

import pytest
from lsprotocol import types as lsp

from gradguard.lsp import parts
from gradguard.lsp.parts import text_of
from gradguard.source.lines import ENCODINGS, LineIndex
from tests.counting import steps

ALPHABET = ["a", "b", "é", "😋", "\n", "\r\n", "\r", "\n", " ", "\ud83d", "\ude0b", "\u2028"]


def plainly(text: str, change: lsp.TextDocumentContentChangePartial, encoding: str) -> str:
    """What a change makes of a text."""
    index = LineIndex(text)
    ends = []
    for position in (change.range.start, change.range.end):
        line = position.line + 1
        ends.append(index.offset(line, index.column(line, position.character, encoding)))
    return text[: min(ends)] + change.text + text[max(ends) :]


def change(rng: random.Random, lines: int) -> lsp.TextDocumentContentChangePartial:
    """A change at a place that may be there."""
    at = lsp.Position(rng.randrange(lines + 2), rng.randrange(12))
    to = at if rng.random() < 0.5 else lsp.Position(rng.randrange(lines + 2), rng.randrange(12))
    text = "".join(rng.choices(ALPHABET, k=rng.choice([0, 0, 1, 2, 30])))
    return lsp.TextDocumentContentChangePartial(lsp.Range(at, to), text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [4, 9, 8000])
def test_changes_come_to_the_same(size: int, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SIZE", size)
    monkeypatch.setattr(parts, "SMALL", size // 4)
    rng = random.Random(size)
    for _ in range(60):
        plain = "".join(rng.choices(ALPHABET, k=rng.randrange(80)))
        text = text_of(plain)
        for _ in range(8):
            changes = [change(rng, LineIndex(text.text).count) for _ in range(rng.choice([1, 1, 5]))]
            for each in changes:
                plain = plainly(plain, each, encoding)
            text = text.edited(changes, encoding)
            assert text.text == plain
            assert (text.index.count, text.index.text) == (LineIndex(plain).count, plain)


@pytest.mark.parametrize("far", [3, 2**31 - 1])
@pytest.mark.parametrize("text", ["", "a", "é\n", "x\r\n" * 20_000])
def test_places_that_are_not_there_are_clamped(text: str, far: int) -> None:
    ends = [lsp.Position(line, character) for line in (0, far) for character in (0, far)]
    for start in ends:
        for end in ends:
            each = lsp.TextDocumentContentChangePartial(lsp.Range(start, end), "new")
            assert text_of(text).edited([each], "utf-16").text == plainly(text, each, "utf-16")


def test_a_whole_text_forgets_what_came_before() -> None:
    whole = lsp.TextDocumentContentChangeWholeDocument
    here = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    partial = lsp.TextDocumentContentChangePartial(here, "new ")
    assert text_of("old").edited([partial, whole("a"), whole("b"), partial], "utf-16").text == "new b"
    assert text_of("old").edited([partial, whole("")], "utf-16").text == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = 1\n" * 1_000_000, (500_000, 3)),
        ("é = 1\r\n" * 1_000_000, (999_999, 3)),
        ("é" + "x = 1; " * 1_000_000, (0, 5_000_000)),
        ("x = 1; " * 1_000_000, (0, 5_000_000)),
    ],
    ids=["lines", "lines of two bytes", "one line of several bytes", "one line"],
)
def test_changes_of_a_long_text_take_few_steps_each(text: str, place: tuple[int, int]) -> None:
    # Each copies parts, which are as long as ever, and adds up a number for each part, which Python does in one step.
    before = text_of(text)
    here = lsp.Position(*place)
    changes = [lsp.TextDocumentContentChangePartial(lsp.Range(here, here), "y")] * 100
    before.edited(changes[:1], "utf-16")
    count = steps(lambda: before.edited(changes, "utf-16"))
    assert count < 100 * 2_000


def test_parts_do_not_grow_in_number_with_changes() -> None:
    text = text_of("x = 1\n" * 20_000)
    start = lsp.Position(5, 0)
    for _ in range(50):
        paste = lsp.TextDocumentContentChangePartial(lsp.Range(start, start), "y\n" * 40_000)
        cut = lsp.TextDocumentContentChangePartial(lsp.Range(start, lsp.Position(40_005, 0)), "")
        text = text.edited([paste, cut], "utf-16")
    assert len(text._parts) < 60
    assert text.text == "x = 1\n" * 20_000
