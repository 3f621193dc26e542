"""A clone is offered only where an expression is the tensor that is saved, and nobody else is given the clone."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability
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


REREAD = {
    "an operand that the product writes": "y = x.sum(0)\nz = y.addmv_(x, y{clone})\n",
    "a column of what is written": "y = x * 1\nlow = y[:, 0]\ny.clamp_(torch.full((3, 3), 0.5), low{clone})\n",
    "an expanded row of what is written": "y = x * 1\nrow = y[1].expand(3, 3)\ny.mul_(row{clone})\n",
}
END = "(y.sum() * 2).backward()\n"
APART = {
    "another vector": "y, v = x.sum(0), x.prod(0)\nz = y.addmv_(x, v)\nv += 1\n",
    "a column of something else": "y, other = x * 1, x * 2\nlow = other[:, 0]\ny.clamp_(torch.zeros(3, 3), low)\nother += 1\n",
}


def applicabilities(text: str) -> set[Applicability]:
    findings = check(Source("program.py", text), Settings()).findings
    return {plan.applicability for finding in findings for plan in finding.fixes if plan.kind == "clone"}


@pytest.mark.parametrize("name", REREAD)
def test_not_safe_where_the_op_reads_what_it_writes(name: str) -> None:
    before, after = (HEAD + REREAD[name].format(clone=each) + END for each in ("", ".clone()"))
    assert applicabilities(before) == {Applicability.UNSAFE}
    [found] = shared_pool().call(
        "tests.fixes.judging:verdicts", timeout=300, programs=[(before, after, True)]
    )
    assert any("differs" in each for each in found)


@pytest.mark.parametrize("name", APART)
def test_safe_where_the_operand_lies_elsewhere(name: str) -> None:
    text = HEAD + APART[name] + END
    assert applicabilities(text) == {Applicability.SAFE}
    [found] = shared_pool().call(
        "tests.fixes.judging:verdicts", timeout=300, programs=[(text, fixed(text)[0].after, True)]
    )
    assert not found
