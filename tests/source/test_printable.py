"""Text of others is shown, never obeyed."""

from __future__ import annotations

import json
import sys
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradguard.source.printable import printable, printable_json, printable_lines, quotable
from tests.hostile.alphabet import TEXTS, acting, commands

ANY = TEXTS | st.text()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b0m\u2028\u202e\U000e0041", r"\x9b0m\u2028\u202e\U000e0041"),
        ("\udc9b\ud800", r"\x9b\ud800"),
        ("::error ::hi.py", r"\::error ::hi.py"),
        (" \u3000::error ::hi.py", " \u3000\\::error ::hi.py"),
        (" \t::error ::hi.py", r" \t::error ::hi.py"),
        ("x  ##vso[task.complete]", r"x  ##\vso[task.complete]"),
        ("###[group]", r"###\[group]"),
    ],
)
def test_what_acts_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "src/train, v2.py",
        "한국어 모델.py",
        "naïve",
        "🏴\u200d☠️",
        "نمی\u200cدانم",
        "a::b",
        "a ## b",
        "C:/x",
        "\\n",
        "x[0]",
    ],
)
def test_what_is_only_text_stays(text: str) -> None:
    assert printable(text) == printable_lines(text) == printable_json(text) == text


def test_no_character_acts() -> None:
    everything = [chr(number) for number in range(sys.maxunicode + 1)]
    for char in everything:
        if unicodedata.category(char) == "Cs":
            assert printable(char) != char or 0xDCA0 <= ord(char) <= 0xDCFF
        else:
            assert not acting(printable(char), keep=""), hex(ord(char))


BEFORE = (" ", "\t", "\n", "\r", "\x0c", "\xa0", "\u3000", "\u2028", ":", "::", "#", "##", "x")


def test_no_way_leads_to_a_command() -> None:
    for count in range(1, 5):
        for parts in product(BEFORE, repeat=count):
            for command in ("::error ::x", "##[error]x"):
                text = "".join(parts) + command
                one, several = printable(text), printable_lines(text)
                assert not acting(one, keep="")
                assert not acting(several, keep="\n\t")
                assert not commands(one), text
                assert not commands(several), text


@given(ANY)
def test_one_line_is_one_line(text: str) -> None:
    shown = printable(text)
    assert not acting(shown, keep="")
    assert not commands(shown)
    assert printable(shown) == shown


@given(ANY)
def test_lines_stay_lines(text: str) -> None:
    shown = printable_lines(text)
    assert shown.count("\n") == text.count("\n")
    assert not acting(shown, keep="\n\t")
    assert not commands(shown)
    assert printable_lines(shown) == shown


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_json_says_the_same(value: object) -> None:
    shown = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(shown) == value
    assert not acting(shown)
    assert not commands(shown)


@given(ANY)
def test_what_is_quoted_stands_between_backquotes(text: str) -> None:
    shown = quotable(text)
    assert "`" not in shown
    assert not acting(shown, keep="")
    assert quotable(shown) == shown
