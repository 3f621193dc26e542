"""The page of a rule on the web says below each program what torch does with it."""

from __future__ import annotations

import re

import pytest

from docs import build
from tests.rules.pages import BLOCK, HEADINGS, Page, english, read, translations

PAGES = [(read(path), "en") for path in english()] + [(read(path), "ko") for path in translations()]


@pytest.mark.parametrize(("page", "language"), PAGES, ids=lambda value: getattr(value, "name", value))
def test_each_program_has_the_verdict_that_its_test_asks_torch_for(page: Page, language: str) -> None:
    verdicts = build.VERDICTS[language]
    said = build.judged(page.path.read_text("utf-8"), verdicts)
    sections = re.split(r"^## .+$", said, flags=re.MULTILINE)
    for heading, kind in (("Example", page.runtime), ("Use instead", "repaired")):
        section = sections[HEADINGS.index(heading) + 1]
        rest = BLOCK.split(section)[2::2]  # what stands behind each program
        assert rest, heading
        assert all(re.match(rf'\n\n!!! \w+ "{verdicts[kind]}"\n', text) for text in rest), heading
    assert len(re.findall("^!!! ", said, re.MULTILINE)) == len(
        BLOCK.findall(sections[3]) + BLOCK.findall(sections[4])
    )
    assert "runtime:" not in said
