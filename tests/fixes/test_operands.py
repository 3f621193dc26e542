"""What is moved or rewrapped, with each kind of operand: a fix that torch would refuse is not offered."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source
from tests.fixes.test_fixtures import made
from tests.oracle import shared_pool

FUNCTION = """import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, keep=None):
        {body}

    @staticmethod
    def backward(ctx, g, *more):
        return g * 2, None


w = torch.rand(3, requires_grad=True)
out = F.apply({given})
(out if isinstance(out, torch.Tensor) else out[0]).sum().backward()
"""
MARKED = {
    "returned": ("x.mul_(2)\n        return x", "w * 1", True),
    "returned by the write": ("return x.mul_(2)", "w * 1", True),
    "returned among others": ("x.mul_(2)\n        return x, x * 1", "w * 1", True),
    "a leaf": ("x.mul_(2)\n        return x", "w", False),
    "not returned": ("x.mul_(2)\n        return x * 1", "w * 1", False),
    "not returned on one way": (
        "x.mul_(2)\n        if keep is None:\n            return x * 1\n        return x",
        "w * 1",
        False,
    ),
    "another of that name": ("y = x.mul_(2)\n        x = x * 1\n        return x", "w * 1", False),
}


def plans(code: str) -> set[str]:
    found = check(Source("program.py", code), Settings()).findings
    assert found
    return {plan.kind for finding in found for plan in finding.fixes}


@pytest.mark.parametrize("what", MARKED)
def test_what_is_declared_as_written(what: str) -> None:
    body, given, offered = MARKED[what]
    assert ("insert-before" in plans(FUNCTION.format(body=body, given=given))) is offered


COMPARED = """import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
count = int(torch.tensor(2))
for x in [torch.rand(4, 3, device=device)] * 4:
    out = net(x)
    num = (out > 0).sum()
    loss = out.sum() / {expression}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OPERANDS = {
    "max(1, num)": "clamp",
    "max(num, 1.5)": "clamp",
    "max([num, 1])": "clamp",
    "min(num, -1)": "clamp",
    "max(num, num + 1)": "stack",
    "max([num, num + 1, num * 2])": "stack",
    "max(1, num, 3)": "",
    "max(num, count)": "",
    "max(num, abs(3))": "",
    "max(1, num, key=abs)": "",
    "max(num, 1, default=3)": "",
    "max([num, count, 1])": "",
}


@pytest.mark.parametrize("expression", OPERANDS)
def test_the_largest_of_tensors_numbers_and_the_unknown(expression: str) -> None:
    source = Source("program.py", COMPARED.format(expression=expression))
    offered = {plan.kind for finding in check(source, Settings()).findings for plan in finding.fixes}
    assert offered & {"clamp", "stack"} == ({OPERANDS[expression]} - {""})


def test_torch_runs_what_is_offered() -> None:
    programs = [
        (code, made(code, kind), False)
        for code, kind in [
            *(
                (FUNCTION.format(body=body, given=given), "insert-before")
                for body, given, offered in MARKED.values()
                if offered
            ),
            *((COMPARED.format(expression=each), kind) for each, kind in OPERANDS.items() if kind),
        ]
    ]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=programs)
    assert [found for found in answers if found] == []
