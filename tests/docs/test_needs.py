"""The page of what backward needs agrees with torch, and its questions are those of the guide."""

from __future__ import annotations

import re

import pytest
from docs.build import described

from docs import needs
from gradguard.cli import discover
from gradguard.cli.configuration import Configuration
from gradguard.ops import table
from tests.docs.pages import ROOT
from tests.oracle import judge

GROUPS = needs.grouped(table.load("2.13"))
"""Of the release that the tests run."""
UNARY = [
    name
    for name in needs.OPERATIONS
    if name.count(".") == 1
    and name.rpartition(".")[2]
    in [
        "abs",
        "square",
        "sqrt",
        "rsqrt",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "neg",
        "erf",
        "reciprocal",
        "sum",
        "mean",
        "prod",
        "std",
        "var",
        "norm",
        "cumsum",
    ]
]


@pytest.mark.parametrize("name", UNARY)
def test_torch_refuses_what_the_group_says_and_nothing_else(name: str) -> None:
    group = next(group for group, names in GROUPS.items() if name in names)
    for written, refused in (("x", group in ("input", "both")), ("y", group in ("output", "both"))):
        program = (
            "import torch\n\nx = torch.rand(3, requires_grad=True) * 1\n"
            f"y = {name}(x{', dim=0' if name.endswith('cumsum') else ''})\n"
            f"{written}.mul_(2)\ny.sum().backward()\n"
        )
        assert (judge(program).outcome == "raises") is refused, written


def test_some_ninety_operations_are_in_four_groups() -> None:
    assert sum(map(len, GROUPS.values())) > 85
    assert min(map(len, GROUPS.values())) > 8


@pytest.mark.parametrize("language", ["en", "ko"])
def test_there_is_one_set_of_questions(language: str) -> None:
    guide = (ROOT / "docs" / language / "guides" / "inplace.md").read_text("utf-8")
    asked = [question.replace("**", "") for question in needs.QUESTIONS[language]]
    assert re.findall(r"^## \d\. (.*)$", guide, re.MULTILINE) == asked
    assert all(question in needs.page(language) for question in needs.QUESTIONS[language])


def test_a_page_is_described_by_its_first_sentence() -> None:
    assert described("# T\n\nSays `so`. And more.\n").startswith('---\ndescription: "Says so."\n---\n\n# T\n')
    assert described("---\nhide: [toc]\n---\n\n# T\n\nSo.\n").startswith(
        '---\ndescription: "So."\nhide: [toc]\n---\n'
    )
    kept = "---\ndescription: own\n---\n\n# T\n"
    assert described(kept) == kept


def test_the_checkout_is_checked_without_what_is_wrong_on_purpose() -> None:
    configuration = Configuration()
    found = [str(each.path.relative_to(ROOT)) for each in discover.discover([str(ROOT)], configuration.of)]
    assert "server/gradguard/main.py" in found
    assert not [name for name in found if name.startswith(("fixtures/", "tests/vscode/workspace/"))]
