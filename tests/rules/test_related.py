"""What else a finding points to: the call that lacks a guard, and checks of the same kind in the file."""

from __future__ import annotations

import textwrap

from tests.marks import findings

EVALUATES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def loss(self, x):
        return self.body(x).mean()

net = Net()
net.eval()
total = 0.0
for _ in range(9):
    total += net.loss(torch.rand(2, 3)).item()
"""

SAMPLES = """
import torch
from torch import nn
from torch.distributions import Normal

net = nn.Linear(3, 3).cuda()
for _ in range(9):
    mean = net(torch.rand(2, 3).cuda())
    one = Normal(mean, mean.exp())
    two = Normal(mean, mean.exp())
    (one.log_prob(mean.detach()) - two.log_prob(mean.detach())).mean().backward()
"""


def _related(text: str, code: str) -> list[list[tuple[int, str]]]:
    told = [one for one in findings(textwrap.dedent(text)) if one.code == code]
    return [[(each.span.line, each.message) for each in one.related] for one in told]


def test_an_evaluation_points_to_the_call_that_lacks_the_guard_and_to_its_loop() -> None:
    assert _related(EVALUATES, "GG204") == [
        [(17, "called here, without `torch.no_grad()`"), (16, "in this loop")]
    ]


def test_one_that_calls_the_network_itself_points_to_its_loop() -> None:
    text = EVALUATES.replace("net.loss(torch.rand(2, 3))", "net.body(torch.rand(2, 3)).mean()")
    assert _related(text, "GG204") == [[(16, "in this loop")]]


def test_checks_of_distributions_are_one_note() -> None:
    (told,) = _related(SAMPLES, "GG302")
    assert [line for line, message in told if "validate_args" in message] == [10, 11]
