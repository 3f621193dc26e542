"""Each word of the glossary has one meaning, and is in the code what the glossary says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import INLINE, ROOT

CODE = ROOT / "server" / "gradguard"
FIELDS = {"torch", "abstract interpretation", "LSP", "Python", "gradguard"}
PLACED = re.compile(r"`([\w/]+\.py)` `([\w.]+)`")


def rows() -> list[tuple[str, str, str, str]]:
    """The rows of the glossary: word, meaning, whose word it is, and what it is in the code."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = page.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]  # type: ignore[misc]


def names(path: Path) -> set[str]:
    """What a file defines: `Class`, `function`, `Class.method`, `Class.field`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        found |= set(_defined(node))
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for part in ast.walk(node) for name in _defined(part)}
    return found


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [each.attr if isinstance(each, ast.Attribute) else each.id for each in targets if hasattr(each, "attr") or hasattr(each, "id")]  # fmt: skip


@pytest.mark.parametrize(("word", "meaning", "field", "where"), rows(), ids=lambda cell: cell[:20])
def test_a_word_is_what_the_glossary_says(word: str, meaning: str, field: str, where: str) -> None:
    placed = PLACED.fullmatch(where)
    assert placed is not None
    file, name = placed.groups()
    assert name in names(CODE / file)
    assert field in FIELDS
    text = (CODE / file).read_text("utf-8")
    assert [each for each in INLINE.findall(meaning) if each not in text] == []


def test_a_word_stands_once_and_nothing_has_two_words() -> None:
    words = [row[0] for row in rows()]
    assert len(words) > 40
    assert sorted(set(words)) == sorted(words)
    places = [row[3] for row in rows()]
    assert sorted(set(places)) == sorted(places)
