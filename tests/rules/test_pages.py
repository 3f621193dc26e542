"""Every page has its fixed form, and its examples are what the checker and torch make of them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from gradguard.check.catalogue import catalogue
from gradguard.check.settings import Level, Settings
from gradguard.ide.hover import why_it_matters
from gradguard.ide.pages import page, stem
from tests.marks import disagreement, expected, findings
from tests.oracle import Program, Verdict, judge_many, measure
from tests.rules.pages import BLOCK, FOLDER, HEADINGS, KINDS, Page, english, read, translations

PAGES = [read(path) for path in english()]


def of(value: Page | Path) -> str:
    return value.path.stem if isinstance(value, Page) else f"{value.parent.name}-{value.stem}"


each_page = pytest.mark.parametrize("rule_page", PAGES, ids=of)


@each_page
def test_form(rule_page: Page) -> None:
    assert tuple(rule_page.sections) == HEADINGS
    assert rule_page.path.stem == stem(rule_page.name)
    assert rule_page.runtime in KINDS
    for heading, text in rule_page.sections.items():
        assert text.strip(), f"{heading} is empty"
    examples = rule_page.programs("Example")
    assert examples
    assert all(expected(code, rule_page.code) for code in examples), "an example without a mark"
    assert not any(expected(code, rule_page.code) for code in rule_page.programs("Use instead"))


@each_page
def test_first_paragraph_is_a_hover(rule_page: Page) -> None:
    why = why_it_matters(rule_page.name, "en")
    assert 20 < len(why) < 420


def test_a_page_for_each_rule_and_a_rule_for_each_page() -> None:
    pages = {(each.code, each.name) for each in PAGES}
    rules = {(each.code, each.name) for each in catalogue().rules}
    assert rules - pages == set()
    assert pages - rules == set()


@pytest.mark.parametrize("path", translations(), ids=of)
def test_translation_follows_the_page(path: Path) -> None:
    translated, original = read(path), read(FOLDER / path.name)
    assert (translated.code, translated.name, translated.runtime) == (
        original.code,
        original.name,
        original.runtime,
    )
    assert len(translated.sections) == len(HEADINGS)
    assert BLOCK.findall(path.read_text("utf-8")) == BLOCK.findall(original.path.read_text("utf-8"))
    assert page(original.name, path.parent.name) == path.read_text("utf-8")


def test_every_page_is_translated() -> None:
    for language in {path.parent.name for path in translations()}:
        assert {path.name for path in translations() if path.parent.name == language} == {
            path.name for path in english()
        }


@each_page
def test_checker_agrees(rule_page: Page) -> None:
    settings = Settings()
    rule = catalogue().rule(rule_page.code)
    assert rule is not None
    if not rule.on:
        settings = dataclasses.replace(settings, levels=((rule.code, Level.WARNING),))
    for section in ("Example", "Use instead"):
        for code in rule_page.programs(section):
            found = findings(code, settings)
            assert disagreement(code, found, expected(code, rule_page.code)) == []
            if section == "Use instead":
                assert rule.code not in {each.code for each in found}


@each_page
def test_torch_agrees(rule_page: Page) -> None:
    """Examples do what the page declares, repaired ones do not; the n-th repairs the n-th example."""
    examples, repaired = rule_page.programs("Example"), rule_page.programs("Use instead")
    bad, good = _judged(examples), _judged(repaired)
    assert [verdict.outcome for verdict in good] == ["ok"] * len(good), good
    if rule_page.runtime == "raises":
        assert [verdict.outcome for verdict in bad] == ["raises"] * len(bad), bad
        quoted = re.findall(r"^```text\n(.*?)^```$", rule_page.sections["What torch says"], re.M | re.S)
        for verdict in bad:
            assert any(_matches(text, verdict.error) for text in quoted), verdict.error
        return
    wanted = {"silent": ("silent", "ok")}.get(rule_page.runtime, ("ok",))
    assert all(verdict.outcome in wanted for verdict in bad), bad
    for verdict, better, code, better_code in zip(bad, good, examples, repaired):
        match rule_page.runtime:
            case "silent":
                assert verdict.outcome == "silent" or verdict.stdout != better.stdout
            case "leak":
                assert any(more > less for more, less in zip(kept(code), kept(better_code)))
            case "sync":
                assert reads(code) > reads(better_code)


def _judged(programs: list[str]) -> list[Verdict]:
    """Patient: the page about compiled code loads the compiler."""
    return judge_many([Program(code, timeout=180) for code in programs])


def _matches(quoted: str, error: str) -> bool:
    """A quote names the type of the error, may leave out the middle with `...` and may be broken into lines."""
    words = re.sub(r"^[\w.]+: ", "", quoted)
    pieces = [re.escape(" ".join(piece.split())) for piece in words.split("...")]
    return re.search(".*".join(pieces), " ".join(error.split())) is not None


def kept(code: str) -> tuple[int, int]:
    """Nodes, and bytes of saved tensors, alive at the ends of the passes of the program's loops, summed."""
    measured = measure(code)
    assert not measured.error, measured.error
    loops = measured.loops.values()
    assert loops
    return sum(sum(loop.nodes) for loop in loops), sum(sum(loop.saved_bytes) for loop in loops)


def reads(code: str) -> int:
    """How often the host waited."""
    measured = measure(code)
    assert not measured.error, measured.error
    return sum(sum(counts.values()) for counts in measured.host_reads.values())
