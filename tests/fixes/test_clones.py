"""A clone is offered only where an expression is the tensor that is saved, and nobody else is given the clone."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source
from tests.fixes.judging import fixed
from tests.oracle import shared_pool

HEAD = "import torch\nfrom torch import nn\n\nx = torch.rand(3, 3, requires_grad=True)\nkept = []\n"
WRITE = "{name} += 1\n(out.sum() + {name}.sum()).backward()\nprint([each[0].sum() for each in kept])\n"

SEVERAL = {
    "a starred tuple": ("pair = [x * 2, x * 3]\nout = torch.mul(*pair)", "pair[0]"),
    "starred arguments of a function": ("def f(*a):\n    return torch.mul(*a)\n\n\ny = x * 2\nout = f(y, x)", "y"),
    "a dictionary of arguments": ("given = {'input': x * 2, 'other': x * 3}\nout = torch.mul(**given)", "given['other']"),
    "a list": ("ys = [x * 2, x * 3]\nout = torch.linalg.multi_dot(ys)", "ys[0]"),
    "a list of operands": ("ys = [x * 2, x * 3]\nout = torch.einsum('ij,jk->ik', ys)", "ys[1]"),
    "operands by a star": ("ys = [x * 2, x * 3]\nout = torch.einsum('ij,jk->ik', *ys)", "ys[1]"),
    "a hook before the module": (
        "lin = nn.Linear(3, 3)\nlin.register_forward_pre_hook(lambda m, i: kept.append(i[0]))\ny = x * 2\nout = lin(y)", "y",
    ),
    "a hook behind the module": (
        "lin = nn.Linear(3, 3)\nlin.register_forward_hook(lambda m, i, o: kept.append(i[0]))\ny = x * 2\nout = lin(y)", "y",
    ),
    "a hook that sees the result": (
        "act = nn.Sigmoid()\nact.register_forward_hook(lambda m, i, o: kept.append(o))\ny = out = act(x)", "y",
    ),
    "a hook of a part": (
        "net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())\nnet[0].register_forward_pre_hook(lambda m, i: kept.append(i[0]))\n"
        "y = x * 2\nout = net(y)", "y",
    ),
}  # fmt: skip
ONE = {
    "an element of a tuple": ("pair = [x * 2, x * 3]\nout = torch.mul(pair[0], pair[1])", "pair[0]"),
    "an argument by name": ("y = x * 2\nout = torch.mul(input=y, other=x)", "y"),
    "an argument beside a star": ("y = x * 2\nrest = (x,)\nout = torch.mul(y, *rest)", "y"),
    "a module without hooks": ("lin = nn.Linear(3, 3)\ny = x * 2\nout = lin(y)", "y"),
    "a hook that is gone": (
        "lin = nn.Linear(3, 3)\nlin.register_forward_pre_hook(lambda m, i: None).remove()\ny = x * 2\nout = lin(y)", "y",
    ),
    "a state": ("cell = nn.GRU(3, 3)\nh = torch.zeros(1, 3, 3) * x.sum()\nout, _ = cell(x[None], h)", "h"),
}  # fmt: skip


def text_of(case: tuple[str, str]) -> str:
    return HEAD + case[0] + "\n" + WRITE.format(name=case[1])


def kinds(text: str) -> set[str]:
    findings = check(Source("program.py", text), Settings()).findings
    assert [finding.code for finding in findings] == ["GG101"]
    return {plan.kind for finding in findings for plan in finding.fixes}


@pytest.mark.parametrize("name", SEVERAL)
def test_not_of_several_and_not_past_a_hook(name: str) -> None:
    assert "clone" not in kinds(text_of(SEVERAL[name]))


@pytest.mark.parametrize("name", ONE)
def test_of_one(name: str) -> None:
    assert "clone" in kinds(text_of(ONE[name]))


def test_what_is_made_is_right() -> None:
    programs = [
        (text, fixed(text)[0].after, True) for text in map(text_of, (*SEVERAL.values(), *ONE.values()))
    ]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=programs)
    assert {name: found for name, found in zip((*SEVERAL, *ONE), answers) if found} == {}
