"""In-place forms are offered where nothing else needs the old value, and torch finds them right."""

from __future__ import annotations

import pytest

from gradguard.findings import Span
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.source.text import Source
from tests.fixes.undoing import undone
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
    "n = torch.arange(3)\nn = n + 2\ny = x * n": "n += 2",
    "n = torch.arange(3)\nn = n * torch.arange(3)\ny = x * n": "n *= torch.arange(3)",
    "y = x - 0.5\ny = F.leaky_relu(y, 0.2)": "y = F.leaky_relu(y, 0.2, inplace=True)",
    "y = x * 2\nkept = {1: x}\ny = y + 3": "y += 3",
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
    "a dictionary has it as a key": "y = x * 2\nkept = {y: 1}\ny = y + 1\nprint(list(kept)[0].sum())",
    "a key holds it": "y = x * 2\nkept = {}\nkept[(1, y)] = 1\ny = y + 1\nprint(list(kept)[0][1].sum())",
    "hooks have what an op saved": "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n"
    "    y = x * 2\n    z = y * y\n    y = y + z\n    y.sum().backward()\ny = x * 3",
    "a pullback has it": "y = x * 2\n_, pull = torch.func.vjp(torch.sin, y)\ny = y + 1\nprint(pull(torch.ones(3, 3))[0].sum())",
    "its writes are counted": "y = x * 2\ny = y * 3\nprint(y._version)",
    "integers become fractions": "n = torch.arange(3)\nn = n + 0.5\ny = x * n",
    "integers are divided": "n = torch.arange(3)\nn = n / 2\ny = x * n",
    "a function of integers gives fractions": "n = torch.arange(3)\nn = n.sqrt()\ny = x * n",
    "integers times a name": "n, s = torch.arange(3), 0.5\nn = n * s\ny = x * n",
    "truth values become integers": "n = torch.ones(3, dtype=torch.bool)\nn = n + 1\ny = x * n",
    "small integers are summed up": "n = torch.ones(3, dtype=torch.int32)\nn = n.cumsum(0)\ny = x * n",
    "fractions become complex": "n = torch.ones(3)\nn = n * 1j\ny = x * n.abs()",
    "a negative slope": "y = x - 0.5\ny = F.leaky_relu(y, -0.5)",
    "a slope that is not seen": "s = -0.5\ny = x - 0.5\ny = F.leaky_relu(y, negative_slope=s)",
    "a negative scale": "y = x - 0.5\ny = F.elu(y, -0.5)",
    "it loses its history": "y = x * 2\nwith torch.no_grad():\n    y = y + 1\ny.requires_grad_()",
}


@pytest.mark.parametrize("body", PROVEN)
def test_proven(body: str) -> None:
    assert offered(program(body)) == [PROVEN[body]]


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    assert offered(program(REFUSED[why])) == []


FLAG = """import torch
from torch import nn

x = torch.rand(3, 3, requires_grad=True)
net = nn.Sequential(nn.Linear(3, 3), nn.{made})
net(x).sum().backward()
{line}
"""
FLAGS = {
    "nobody asks": ("ReLU()", "print(x.grad.sum())", True),
    "a slope": ("LeakyReLU(0.1)", "print(x.grad.sum())", True),
    "it is asked for": ("ReLU()", "print(net[1].inplace)", False),
    "it is asked for by name": ("ReLU()", "print(getattr(net[1], 'inplace'))", False),
    "all is asked for": ("ReLU()", "print(vars(net[1]))", False),
    "it is printed": ("ReLU()", "print(net)", False),
    "a negative slope": ("LeakyReLU(-0.1)", "print(x.grad.sum())", False),
    "a negative scale": ("CELU(alpha=-1.0)", "print(x.grad.sum())", False),
}


@pytest.mark.parametrize("why", FLAGS)
def test_flags(why: str) -> None:
    made, line, wanted = FLAGS[why]
    plans = inplace.rewrites(Source("p.py", FLAG.format(made=made, line=line)), EVERYWHERE)
    assert [plan.kind for plan in plans] == ["add-inplace"] * wanted


def test_torch_shows_why_flags_are_left_alone() -> None:
    programs = []
    for made, line, _ in FLAGS.values():
        text = FLAG.format(made=made, line=line)
        flagged = made.replace(")", ", inplace=True)").replace("(, ", "(")
        programs.append((text, text.replace(made, flagged), True))
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=120, programs=programs)
    assert [bool(wrong) for wrong in answers] == [not wanted for *_, wanted in FLAGS.values()]


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
    text = undone(source, range(1, source.lines.count + 1))
    changed = "y = y + 1\ny = y.mul(2)\ny = F.relu(y)\ny = y.clone()\ny[0] = 1\ny = y.clone().zero_()"
    assert text == source.text.replace(body[10:], changed)


def test_each_of_several_that_are_alike() -> None:
    """Judging one form leaves the places of the others what they are."""
    head = "import torch\nx = torch.rand(3, requires_grad=True)\ny = x * 2\n"
    source = Source("program.py", head + "y = y + 1\ny = y + 1\ny = y + 1\ny.sum().backward()\n")
    plans = inplace.rewrites(source, Span(1, 1, 8, 1))
    assert [plan.span.line for plan in plans] == [4, 5, 6]
    assert [one.lineno for one in source.tree.body] == list(range(1, 8))
