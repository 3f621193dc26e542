"""What a hover shows of a program is text: no link, no picture and no HTML comes out of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gradguard.check.settings import DEFAULTS
from gradguard.check.workspace import EMPTY
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Severity, Span
from gradguard.ide import hints, hover
from gradguard.ide.analysis import Analysis, analyse, analysis, facts
from gradguard.ide.pages import link
from gradguard.ide.wording import Wording, inline
from gradguard.source.text import Source
from tests.hostile.alphabet import TEXTS, acting

STRINGS = [
    "a`](x) ![p](https://a.example/p.png) `",
    "\\n\\n<img src=x>",
    "``[x](command:quit)``",
    "\\x1b[2J`\\u202e",
    "`",
]

PROGRAM = """\
import torch
kept = {}
x = torch.randn(3, requires_grad=True)
kept[STRING] = x.exp()
kept[STRING].add_(1)
kept[STRING] += torch.where(x > 0, kept[STRING], other=kept[f'''{x}
<b>STRING''']) * kept[STRING]
kept[STRING].sum().backward()
total = 0
for _ in range(3):
    total += kept[STRING].sum()
    kept[f'''
STRING'''] = torch.nn.functional.relu(kept[STRING] * x)
"""


def live(markdown: str) -> list[str]:
    """Addresses of links and pictures, and HTML."""
    found = []
    waiting: list[Token] = MarkdownIt("commonmark").parse(markdown)
    while waiting:
        token = waiting.pop()
        waiting.extend(token.children or ())
        if token.type in ("link_open", "image"):
            found.append(str(token.attrs.get("href", token.attrs.get("src"))))
        elif token.type.startswith("html"):
            found.append(token.content)
    return found


def program(string: str) -> Analysis:
    text = PROGRAM.replace("[STRING]", f'["{string}"]').replace("STRING", string)
    return analysis(Source("train.py", text), DEFAULTS, EMPTY, analyse)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("string", STRINGS)
def test_strings_of_a_program_are_text_in_its_hovers(string: str, language: str) -> None:
    found = program(string)
    assert found.findings
    own = {link(each.name) for each in (*found.findings, *found.possible)}
    seen = 0
    for number, line in enumerate(found.source.text.split("\n"), 1):
        for column in range(1, len(line) + 2):
            shown = hover.hover(found, found.findings, number, column, Wording(language), facts(found))
            if shown is not None:
                seen += 1
                assert set(live(shown.text)) <= own, shown.text
                assert not acting(shown.text), shown.text
    assert seen > 50
    known = facts(found)
    assert known is not None
    for hint in hints.hints(found, known, found.findings, Span(1, 1, 99, 1), Wording(language)):
        assert not live(hint.tooltip)


@pytest.mark.parametrize("string", STRINGS)
def test_messages_are_one_line_with_whole_names(string: str) -> None:
    found = program(string)
    for finding in (*found.findings, *found.possible):
        texts = [
            finding.message,
            *(each.message for each in finding.related),
            *(fix.title for fix in finding.fixes),
        ]
        for text in texts:
            assert not acting(text, keep="")
            assert text.count("`") % 2 == 0, text


@given(TEXTS | st.text())
def test_any_message_is_text(text: str) -> None:
    assert not live(inline(text))
    assert (
        inline("an in-place `x[0]` overwrites `y`, which exp_ saved")
        == "an in-place `x[0]` overwrites `y`, which exp_ saved"
    )


@given(TEXTS, TEXTS)
def test_any_finding_is_text(message: str, title: str) -> None:
    found = program("a")
    fix = FixPlan("out-of-place", title, Applicability.SAFE, Span(1, 1, 1, 2))
    made = Finding(
        "train.py",
        Span(1, 1, 1, 2),
        "GG101",
        "inplace-on-saved-tensor",
        Severity.ERROR,
        Certainty.CERTAIN,
        message,
        (),
        (fix,),
    )
    shown = hover.hover(replace(found), (made,), 1, 1, Wording("en"))
    assert shown is not None
    assert live(shown.text) == [link(made.name)]
