"""Light mode watches few passes, and says nothing that the full watch would not."""

from __future__ import annotations

import json

import pytest
from tests.runtime.test_ranks import LAST_RUN, run

START = """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
"""
CLOSURE = """opt = torch.optim.{optimizer}(net.parameters(), lr=0.01)
def closure():
    opt.zero_grad()
    loss = net(torch.rand(8, 4)).square().mean()
    loss.backward()
    return loss
for _ in range(150):
    opt.step(closure)
"""
GROWTH = """opt = torch.optim.SGD(net.parameters(), lr=0.01)
total, history = 0, []
def closure():
    global total
    opt.zero_grad()
    loss = net(torch.rand(8, 4)).square().mean()
    loss.backward()
    {keep}
    return loss
for _ in range(130):
    {step}
"""
# The pass in which light mode stops to watch has recorded graphs that are used after that.
LATER = """opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(30):
    opt.zero_grad()
    loss = sum(net(torch.rand(2, 4)).mean() for _ in range(5))
    loss.backward(retain_graph=True)
    loss.backward()
    opt.step()
"""


def told(code: str, *options: str) -> tuple[int, list[str]]:
    """How many operators were watched, and what was found."""
    data = json.loads(run(*options, "train.py", train_py=START + code).files[LAST_RUN])
    return data["costs"]["operators"], [f["code"] for f in data["findings"]]


@pytest.mark.parametrize("optimizer", ["SGD", "LBFGS"])
def test_steps_with_a_closure_are_sampled(optimizer):
    code = CLOSURE.format(optimizer=optimizer)
    (light, few), (full, all_) = told(code, "--light"), told(code)
    assert light * 5 < full
    assert few == all_ == []


@pytest.mark.parametrize("step", ["opt.step(closure)", "closure(); opt.step()"])
@pytest.mark.parametrize(
    ("keep", "code"), [("total = total + loss", "GG201"), ("history.append(loss)", "GG202")]
)
def test_growth_is_found(step, keep, code):
    assert told(GROWTH.format(step=step, keep=keep), "--light")[1] == [code]


def test_graphs_that_are_used_later_are_not_called_useless():
    assert told(LATER)[1] == []
    assert told(LATER, "--light")[1] == []
