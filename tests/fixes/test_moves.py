"""A statement is moved behind another one only where both stand in one function."""

from __future__ import annotations

from tests.marks import findings

BEFORE = """\
import torch

w = torch.rand(3, requires_grad=True)
y = w.exp()
y.mul_(2)
loss = (w.exp() * y.detach()).sum() + y.sum()
loss.backward()
"""
IN_A_FUNCTION = """\
import torch

w = torch.rand(3, requires_grad=True)


def block():
    y = w.exp()
    y.mul_(2)
    return y


def train():
    loss = block().sum()
    loss.backward()


train()
"""


def titles(text: str) -> set[str]:
    return {plan.title for finding in findings(text) for plan in finding.fixes}


def test_beside_the_backward() -> None:
    assert "Write after the backward" in titles(BEFORE)


def test_not_into_the_caller() -> None:
    assert titles(IN_A_FUNCTION)
    assert "Write after the backward" not in titles(IN_A_FUNCTION)
