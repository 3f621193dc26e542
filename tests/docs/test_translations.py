"""Every page has a Korean one with the same parts, so that a page that grows leaves no stale translation behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import diagrams, settings
from gradguard.check.settings import options
from tests.docs.pages import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`\n]+)`")
RULES = ROOT / "server" / "gradguard" / "rules"
DOCS = ROOT / "docs"
OWN = {name: DOCS / "ko" / f"{name.lower()}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")}


def pairs() -> list[tuple[Path, Path]]:
    """Every English page with the place of its translation."""
    english = DOCS / "en"
    return [
        *((path, DOCS / "ko" / path.relative_to(english)) for path in sorted(english.glob("**/*.md"))),
        *((path, RULES / "ko" / path.name) for path in sorted(RULES.glob("*.md"))),
        *((ROOT / f"{name}.md", path) for name, path in OWN.items()),
    ]


def shape(text: str) -> list[str]:
    """The parts of a page in order: headings, paragraphs, items, rows of tables, and programs word for word."""
    programs: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        programs.append(match.group(0))
        return f"\n\n```{len(programs) - 1}\n\n"

    parts: list[str] = []
    for block in re.split(r"\n\s*\n", FENCE.sub(put_aside, text).strip()):
        for number, line in enumerate(block.splitlines()):
            words = line.split()
            if words[0].startswith("```"):
                parts.append(programs[int(words[0][3:])])
            elif re.fullmatch(r"#+|-|\d+\.", words[0]):
                parts.append(words[0])
            elif words[0].startswith("|"):
                parts.append(f"row of {line.count('|') - 1}")
            elif number == 0:
                parts.append("text")
    return parts


@pytest.mark.parametrize(("english", "korean"), pairs(), ids=lambda path: path.stem)
def test_the_translation_has_the_parts_of_the_page(english: Path, korean: Path) -> None:
    assert korean.is_file(), f"{english.name} has no Korean page"
    page, translated = english.read_text("utf-8"), korean.read_text("utf-8")
    assert shape(translated) == shape(page)
    assert set(INLINE.findall(FENCE.sub("", translated))) == set(INLINE.findall(FENCE.sub("", page)))
    assert sorted(LINK.findall(translated)) == sorted(
        link_from(korean, english, link) for link in LINK.findall(page)
    )


def link_from(korean: Path, english: Path, link: str) -> str:
    """A link as it reads from the translation: pages of the repository are translated elsewhere than they lie."""
    return f"{Path(link).stem.lower()}.md" if english.parent == ROOT and Path(link).stem in OWN else link


def test_no_korean_page_is_left_over() -> None:
    korean = {path for _, path in pairs()}
    assert {*(DOCS / "ko").glob("**/*.md"), *(RULES / "ko").glob("*.md")} == korean


def test_the_settings_are_translated() -> None:
    english, korean = settings.page("en"), settings.page("ko")
    assert len(shape(korean)) == len(shape(english))
    for option in options().values():
        assert option.doc not in korean
    assert not re.search(r"^[A-Z][a-z]+ [a-z]+ ", FENCE.sub("", korean), re.MULTILINE)


@pytest.mark.parametrize("name", diagrams.names())
def test_the_words_of_a_picture_are_translated(name: str) -> None:
    assert diagrams.drawn(name, "ko") != diagrams.drawn(name, "en")


def test_no_translation_of_a_picture_is_left_over() -> None:
    pictures = "".join(diagrams.drawn(name, "en") for name in diagrams.names())
    assert [words for words in diagrams.KOREAN if f">{words}<" not in pictures] == []
