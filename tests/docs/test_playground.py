"""The examples of the playground are what they are said to be, and links to it hold the program beside them."""

from __future__ import annotations

import base64
import html
import re
import zlib
from pathlib import Path

import pytest

from docs import playground, trials
from gradguard.check.api import check
from gradguard.check.settings import DEFAULTS
from gradguard.findings import Severity
from gradguard.ops import listing, table
from gradguard.source.text import Source
from tests.docs.pages import RULES
from tests.marks import disagreement, expected, findings
from tests.oracle import judge

EXAMPLES = sorted(playground.EXAMPLES.glob("*.py"))
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'<a class="gg-try" href="\.\./playground\.html#code=([\w-]+)">')


def unpacked(code: str) -> str:
    return zlib.decompress(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)), wbits=-15).decode()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_checker_agrees(path: Path) -> None:
    text = path.read_text("utf-8")
    assert disagreement(text, findings(text), expected(text, "GG101")) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_torch_agrees(path: Path) -> None:
    text = path.read_text("utf-8")
    raises = any(
        each.severity is Severity.ERROR for each in check(Source(path.name, text), DEFAULTS).findings
    )
    assert judge(text, timeout=180).outcome == ("raises" if raises else "ok")


def test_each_example_has_a_title_in_each_language() -> None:
    for titles in playground.TITLES.values():
        assert sorted(titles) == [path.stem for path in EXAMPLES]


def test_the_program_of_each_operation_raises_in_torch_as_well() -> None:
    lines = listing.render_ops(table.load())
    programs = {line.name: text for line in lines if (text := trials.program(line))}
    assert {
        "torch.sigmoid",
        "torch.sin",
        "torch.mul",
        "Tensor.exp",
        "torch.nn.functional.gelu",
    } <= programs.keys()
    assert "torch.add" not in programs
    wrong = {name for name, text in programs.items() if judge(text, timeout=180).outcome != "raises"}
    assert wrong == set()


@pytest.mark.parametrize("folder", [RULES, RULES / "ko"], ids=["en", "ko"])
def test_each_program_of_a_rule_can_be_tried(folder: Path) -> None:
    pages = sorted(folder.glob("*.md"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text("utf-8")
        linked = playground.tried(text, "en")
        programs = PROGRAM.findall(text)
        assert programs, page.name
        assert [unpacked(html.unescape(code)) for code in LINK.findall(linked)] == programs, page.name
