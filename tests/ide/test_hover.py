"""What a hover says in ordinary training code: about this very line, and nothing twice."""

from __future__ import annotations

import pytest

from gradguard.check.settings import DEFAULTS
from gradguard.check.workspace import EMPTY
from gradguard.ide import hover
from gradguard.ide.analysis import Analysis, analyse, analysis, facts
from gradguard.ide.wording import Wording
from gradguard.source.text import Source

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x):
        h = self.first(x)
        rows = h[0]
        rows += 1
        return h.sigmoid()


net = Net().to("cpu")
optimizer = torch.optim.Adam(net.parameters())
labels = torch.arange(4)
out = net(torch.randn(4, 4))
loss = (F.cross_entropy(out, labels) + F.cross_entropy(out * 2, labels)) / 2
score = -out.mean()
wide = torch.sin(torch.linspace(0, 6.28, 100, device="cpu", dtype=torch.float32) + 1)
loss.backward()
"""


@pytest.fixture(scope="module")
def found() -> Analysis:
    return analysis(Source("train.py", TEXT), DEFAULTS, EMPTY, analyse)


def said(found: Analysis, text: str, inside: int = 0) -> str:
    """The hover on the first occurrence of a text, empty where there is none."""
    line, column = found.source.lines.position(TEXT.index(text) + inside)
    shown = hover.hover(found, found.findings, line, column, Wording("en"), facts(found))
    return shown.text if shown else ""


def test_a_variable_is_described_as_it_was_when_it_got_its_name(found: Analysis) -> None:
    text = said(found, "h = self.first")
    assert "result of `Linear`" in text
    assert "version" not in text.splitlines()[2]
    text = said(found, "rows += 1")
    assert "a view of `h`" in text
    assert "version" not in text


def test_the_name_that_gets_another_value_is_not_the_result(found: Analysis) -> None:
    assert "score" not in said(found, "out.mean", 5)


def test_what_the_line_does_not_give_is_not_said_to_be_saved(found: Analysis) -> None:
    text = said(found, "F.cross_entropy(out, labels)", 4)
    assert "`labels`" in text
    assert "weight" not in text


def test_nothing_is_said_twice(found: Analysis) -> None:
    for place in ("labels = ", "F.cross_entropy", "out.mean", "h.sigmoid", "torch.sin"):
        lines = [line for line in said(found, place, 2).splitlines() if line.startswith("- ")]
        assert len(lines) == len(set(lines)), place
    assert said(found, "labels = ").count("cross_entropy") == 1


def test_a_long_argument_is_shortened_where_it_can_be_understood(found: Analysis) -> None:
    assert "`torch.linspace(…) + 1`" in said(found, "torch.sin", 7)


def shown_in(text: str, line: int, column: int) -> hover.Hover | None:
    """The hover at a position of a program of its own, without its findings."""
    return hover.hover(
        analysis(Source("a.py", text), DEFAULTS, EMPTY, analyse), (), line, column, Wording("en")
    )


def test_an_instance_is_what_the_file_made_it(found: Analysis) -> None:
    text = said(found, "self.first(x)", inside=6)
    assert text.startswith("**`self.first`** `torch.nn.Linear`")
    assert "keeps for backward: `x`, `self.first.weight`" in text
    assert said(found, "net(torch.randn", inside=1) == ""


def test_stepping_an_optimizer_says_what_it_writes() -> None:
    text = "import torch\nw = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD([w])\nopt.step()\nopt.lr()\n"
    shown = shown_in(text, 4, 6)
    assert shown is not None
    assert "writes the parameters in place" in shown.text
    assert shown_in(text, 5, 6) is None


def test_a_name_given_anew_means_the_argument_until_the_line_is_done() -> None:
    text = "import torch\nx = torch.ones(3, requires_grad=True)\nx = x.exp()\n"
    shown = shown_in(text, 3, 8)
    assert shown is not None
    assert "saves `result` for backward" in shown.text
    assert "does not need `x`" in shown.text


def test_shapes_that_decide_are_not_listed() -> None:
    text = "import torch\na = torch.ones(3, 3, requires_grad=True)\nb = torch.ones(3, 3)\nc = a @ b\n"
    shown = shown_in(text, 4, 7)
    assert shown is not None
    assert "the shapes or values ask for it" in shown.text
    assert "ndim" not in shown.text


def test_an_optimizer_is_no_module_and_moving_a_module_no_op(found: Analysis) -> None:
    text = said(found, "torch.optim.Adam", 14)
    assert "is an optimizer" in text
    assert "`step()` writes the parameters in place" in text
    assert said(found, 'Net().to("cpu")', 7) == ""


def test_first_lines_are_short_and_nothing_trails(found: Analysis) -> None:
    for place in ("nn.Module", "nn.Linear", "torch.optim.Adam", "labels = ", "loss.backward", "torch.sin"):
        text = said(found, place, len(place) - 1 if "." in place else 0)
        assert text, place
        assert text == text.rstrip()
        assert len(text.splitlines()[0]) <= 100, place
        assert len(text.splitlines()) <= 12, place
