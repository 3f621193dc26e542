"""What a Function keeps as an attribute of its `ctx`, and what is no write to it as backward sees it.

Torch was seen to give the gradients without the marked line in each of these; the wrong ones are in the fixtures.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.marks import findings

FUNCTION = """\
import torch

class Scales(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.x = x
        ctx.like = s
        return x * s

    @staticmethod
    def backward(ctx, g):
        {backward}

s = torch.tensor(2.0, requires_grad=True)
h = torch.ones(2)
"""
READS = "return g * 2, (g * ctx.x).sum()"
CASES = {
    "written after the backward": (READS, "Scales.apply(h, s).sum().backward(); h.zero_()"),
    "another tensor under the name": (READS, "y = Scales.apply(h, s); h = h * 0; y.sum().backward()"),
    "a copy is kept": (READS, "y = Scales.apply(h.clone(), s); h.zero_(); y.sum().backward()"),
    "only a shape is read": (
        "return g * 2, g.sum().reshape(ctx.like.shape) * len(ctx.x.shape)",
        "y = Scales.apply(h, s); h.zero_(); y.sum().backward()",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_write_that_backward_sees(name: str) -> None:
    backward, then = CASES[name]
    text = FUNCTION.format(backward=backward) + then.replace("; ", "\n") + "\n"
    assert {one.code for one in findings(text)} <= {"GG208"}


@pytest.mark.parametrize(
    "backward", [READS, "x = ctx.x\nreturn g * 2, (g * x).sum()", "return helper(ctx, g), g.sum()"]
)
def test_a_write_before_backward_reads_it(backward: str) -> None:
    body = textwrap.indent(backward, " " * 8).strip()
    text = FUNCTION.format(backward=body) + "y = Scales.apply(h, s)\nh.zero_()\ny.sum().backward()\n"
    assert "GG105" in {one.code for one in findings(text)}
