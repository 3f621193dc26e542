"""In-place forms are offered where nothing else needs the old value, and torch finds them right."""

from __future__ import annotations

import pytest

from gradguard.findings import Span
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.source.text import Source
from tests.oracle import shared_pool

EVERYWHERE = Span(1, 1, 1000, 1)
HEAD = "import torch\nimport torch.nn.functional as F\n\nx = torch.rand(3, 3, requires_grad=True)\n"
END = "\nprint(y.sum())\ny.sum().backward()\n"


def program(body: str) -> Source:
    return Source("program.py", HEAD + body + END)


def offered(source: Source) -> list[str]:
    """What each offered rewrite makes of its line."""
    found = []
    for plan in inplace.rewrites(source, EVERYWHERE):
        text = applied(source, edits(plan, source) or ())
        found.append(text.splitlines()[plan.span.line - 1])
    return found


PROVEN = {
    "y = x * 2\ny = y + 1": "y += 1",
    "y = x * 2\ny = 3 * y": "y *= 3",
    "y = x @ x\ny = y + torch.ones(3, 3)": "y += torch.ones(3, 3)",
    "y = x * 2\ny = y - torch.ones(3)": "y -= torch.ones(3)",
    "y = x + 1\ny = y.exp()": "y.exp_()",
    "y = x + 1\ny = torch.sigmoid(y)": "torch.sigmoid_(y)",
    "y = x * 2\ny = F.relu(y)": "y = F.relu(y, inplace=True)",
    "y = x * 2\ny = y.clamp(0, 1)  # bounded": "y.clamp_(0, 1)  # bounded",
}
REFUSED = {
    "the op before saved it": "y = x.exp()\ny = y + 1",
    "an op saved it": "y = x * 2\nz = y.sin()\ny = y + z",
    "another name holds it": "y = x * 2\nold = y\ny = y + 1\nprint(old)",
    "a list holds it": "y = x * 2\nkept = [y]\ny = y + 1",
    "a view of it is held": "y = x * 2\nrow = y[0]\ny = y + 1",
    "it is a leaf": "y = torch.rand(3, requires_grad=True)\ny = y * 2",
    "it is a view": "base = x * 2\ny = base[0]\ny = y + 1",
    "the result is larger": "y = x.sum(0) * 2\ny = y + torch.ones(3, 3)",
    "the result has another dtype": "y = x * 2\ny = y + torch.ones(3, dtype=torch.float64)",
    "it is expanded": "y = (x[0] * 2).expand(3, 3)\ny = y + 1",
    "the op gives another shape": "y = x * 2\ny = y.sum(0)",
    "it loses its history": "y = x * 2\nwith torch.no_grad():\n    y = y + 1\ny.requires_grad_()",
}


@pytest.mark.parametrize("body", PROVEN)
def test_proven(body: str) -> None:
    assert offered(program(body)) == [PROVEN[body]]


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    assert offered(program(REFUSED[why])) == []


def test_a_flag_that_is_given_is_left_alone() -> None:
    head = "import torch\nfrom torch import nn\n\nx = torch.rand(3, requires_grad=True)\n"
    for made in ("nn.Hardswish(False)", "nn.ReLU(inplace=False)", "nn.LeakyReLU(0.1, False)"):
        body = f"act = {made}\ny = act(x * 2)\ny.sum().backward()\n"
        assert inplace.rewrites(Source("p.py", head + body), EVERYWHERE) == []


def test_an_argument_is_its_callers() -> None:
    source = Source(
        "p.py", "import torch\n\n\ndef f(y: torch.Tensor):\n    y = y * 2\n    y = y + 1\n    return y\n"
    )
    found = inplace.rewrites(source, EVERYWHERE, unseen=True)
    assert [plan.span.line for plan in found] == [6]


def test_torch_finds_them_right() -> None:
    programs = []
    for body in PROVEN:
        source = program(body)
        (plan,) = inplace.rewrites(source, EVERYWHERE)
        programs.append((source.text, applied(source, edits(plan, source) or ()), True))
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=120, programs=programs)
    assert answers == [[] for _ in programs]


def test_undone_writes_nothing_in_place() -> None:
    body = "y = x * 2\ny += 1\ny.mul_(2)\nF.relu(y, inplace=True)\ny[0] = 1\ny.zero_()"
    source = program(body)
    text = inplace.undone(source, range(1, source.lines.count + 1))
    changed = "y = y + 1\ny = y.mul(2)\ny = F.relu(y)\ny = y.clone()\ny[0] = 1\ny = y.clone().zero_()"
    assert text == source.text.replace(body[10:], changed)


def test_each_of_several_that_are_alike() -> None:
    """Judging one form leaves the places of the others what they are."""
    head = "import torch\nx = torch.rand(3, requires_grad=True)\ny = x * 2\n"
    source = Source("program.py", head + "y = y + 1\ny = y + 1\ny = y + 1\ny.sum().backward()\n")
    plans = inplace.rewrites(source, Span(1, 1, 8, 1))
    assert [plan.span.line for plan in plans] == [4, 5, 6]
    assert [one.lineno for one in source.tree.body] == list(range(1, 8))
