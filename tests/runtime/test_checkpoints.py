"""Checkpoints compute their part again while backward runs: what happens there and to their inputs is seen."""

from __future__ import annotations

import pytest
from tests.oracle.pool import Died
from tests.runtime.watching import Watched, watch

INPUT = """import torch
from torch.utils.checkpoint import checkpoint
w = torch.rand(3, requires_grad=True)
buffer = torch.rand(3)
out = checkpoint(lambda w, b: (w * b).exp().sum(), w, buffer, use_reentrant={reentrant})
buffer{write}
out.backward()
"""
INSIDE = """import torch
from torch.utils.checkpoint import checkpoint
def block(x):
    y = x.exp()
    y{write}
    return y.sum()
w = torch.rand(3, requires_grad=True)
checkpoint(block, w * 1, use_reentrant=True).backward()
"""
TRAINING = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
body, head = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
def part(x):
    return body(x)
for _ in range(8):
    opt.zero_grad()
    y = checkpoint(part, torch.rand(2, 4, requires_grad=True), use_reentrant={reentrant})
    head(y).sum().backward()
    opt.step()
"""


def watched(code: str) -> Watched:
    seen = watch(code)
    assert not isinstance(seen, Died), seen
    assert not seen.troubles, seen.troubles
    return seen


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_write_to_an_input(reentrant):
    seen = watched(INPUT.format(reentrant=reentrant, write=".add_(1)"))
    assert (seen.error_type, seen.line) == ("RuntimeError", 7)
    (finding,) = seen.findings
    assert finding[:2] == (6, "GG101")
    assert finding[4] == (5, 7)
    right = watched(INPUT.format(reentrant=reentrant, write=" = buffer.add(1)"))
    assert (right.error_type, right.findings) == ("", ())


def test_writes_inside_of_what_is_computed_again():
    assert watched(INSIDE.format(write=".add_(1)")).lines == {(5, "GG101")}
    silent = watched(INSIDE.format(write=".data.add_(1)"))
    assert (silent.error_type, silent.lines) == ("", {(5, "GG105")})
    assert watched(INSIDE.format(write=" = y.add(1)")).findings == ()


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_is_not_built_for_nothing(reentrant):
    assert watched(TRAINING.format(reentrant=reentrant)).findings == ()


COMPILED = """import torch
@torch.compile(fullgraph=True, backend="eager")
def scaled(x):
    {line}
    return x
scaled(torch.rand(4))
"""


def test_a_read_in_compiled_code():
    seen = watched(COMPILED.format(line="x = x * 2 if x.sum() > 0 else x"))
    assert (seen.error_type, seen.lines) == ("Unsupported", {(4, "GG303")})
    other = watched(COMPILED.format(line="torch._dynamo.graph_break()"))
    assert (other.error_type, other.findings) == ("Unsupported", ())
