"""Nothing that is said lacks a translation, and no translation drops a name."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.ide.analysis import analyse
from gradguard.ide.wording import ENGLISH, LANGUAGES, Wording, load, pattern, translated
from gradguard.source.text import Source

ROOT = pathlib.Path(__file__).parents[2]
OTHERS = [language for language in LANGUAGES if language != ENGLISH]
FIELD = re.compile(r"\{(\w+)\}")
HANGUL = re.compile("[\uac00-\ud7a3]")


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_there_with_its_fields(language: str) -> None:
    english, other = load(ENGLISH)["texts"], load(language)["texts"]
    assert english.keys() == other.keys()
    for key in english:
        assert set(FIELD.findall(english[key])) == set(FIELD.findall(other[key])), key


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_keeps_its_names(language: str) -> None:
    for english, other in load(language)["messages"].items():
        assert set(FIELD.findall(english)) == set(FIELD.findall(other)), english
        pattern(english)


def test_every_text_that_the_code_asks_for_exists() -> None:
    texts = load(ENGLISH)["texts"]
    asked = set()
    for path in [*ROOT.glob("server/gradguard/ide/*.py"), *ROOT.glob("server/gradguard/lsp/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "text"
                and node.args
            ):
                key = node.args[0]
                for part in (key.body, key.orelse) if isinstance(key, ast.IfExp) else (key,):
                    if isinstance(part, ast.Constant):
                        asked.add(part.value)
    assert len(asked) > 30
    assert asked <= texts.keys()


def said() -> Iterator[str]:
    """Every message, related message and title that the fixtures and the examples of the rules' pages lead to."""
    programs = [path.read_text("utf-8") for path in sorted(ROOT.glob("fixtures/**/*.py"))]
    for page in sorted(ROOT.glob("server/gradguard/rules/*.md")):
        programs += re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(programs) > 50
    settings = Settings(all=True, select=())
    for text in programs:
        for finding in analyse(Source("program.py", text), settings, EMPTY).report.findings:
            yield finding.message
            yield from (each.message for each in finding.related)
            yield from (each.title for each in finding.fixes)


def test_what_rules_say_is_said_in_korean() -> None:
    sentences = set(said())
    assert len(sentences) > 40
    missing = sorted(each for each in sentences if not HANGUL.search(translated(each, "ko")))
    assert not missing
    for sentence in sentences:
        # Names stand in backquotes; none may be lost on the way.
        names = set(re.findall(r"`([^`]+)`", sentence))
        assert names <= set(re.findall(r"`([^`]+)`", translated(sentence, "ko"))), sentence


def test_a_language_without_catalogue_is_english() -> None:
    assert Wording("xx").language == ENGLISH
    assert Wording("xx").message("in this loop") == "in this loop"
