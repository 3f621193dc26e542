"""What methods of torch's modules do."""

from __future__ import annotations

import pytest

from tests.engine.analysing import findings
from tests.oracle import judge

GATED = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        h = self.layer(x)
        if {test}:
            return h * 2
        return h

net = Net()
assert net.compile(backend="eager") is None
net(torch.randn(2, 3)).sum().backward()
"""


@pytest.mark.parametrize(("test", "expected"), [("h.mean() > 0", ["GG303"]), ("h.shape[0] > 1", [])])
def test_a_network_that_compiles_itself_is_compiled_code(test: str, expected: list[str]) -> None:
    assert [one.code for one in findings(GATED.format(test=test))] == expected


def test_compiling_a_network_gives_nothing_back() -> None:
    assert judge(GATED.format(test="h.shape[0] > 1"), timeout=180).outcome == "ok"
