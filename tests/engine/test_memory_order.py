"""Results that lie in memory in another order than their dimensions: reshaping them may copy."""

from __future__ import annotations

import pytest

from gradguard.engine.domain.events import SavedTensorMutated
from tests.engine.analysing import analysed

torch = pytest.importorskip("torch")

PROGRAM = """\
import torch
x = torch.rand({size}, requires_grad=True) + 1
y = {made}.exp()
y.reshape(-1).zero_()
y.sum().backward()
"""

COPIED = [
    ("2, 2, 3, 5", 'torch.einsum("bhij,bjhd->bihd", x, torch.rand(2, 5, 2, 4))'),
    ("3, 4", "torch.rot90(x)"),
    ("3, 3", "torch.linalg.qr(x).Q"),
    ("3, 3", "torch.linalg.solve(x + torch.eye(3), torch.rand(3, 3))"),
]
SHARED = [
    ("3, 4", "torch.flip(x, (0,))"),
    ("3, 3", "torch.linalg.multi_dot([x, x])"),
    ("3, 4", "torch.roll(x, 1)"),
]


def _raises(program: str) -> bool:
    try:
        exec(compile(program, "<program>", "exec"), {})
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
        return True
    return False


def _certain(program: str) -> bool:
    events = analysed(program).events
    return any(event.certain for event in events if isinstance(event, SavedTensorMutated))


@pytest.mark.parametrize(("size", "made"), COPIED)
def test_no_view_is_certain_of_what_may_not_be_contiguous(size: str, made: str) -> None:
    program = PROGRAM.format(size=size, made=made)
    assert not _raises(program)
    assert not _certain(program)


@pytest.mark.parametrize(("size", "made"), SHARED)
def test_a_view_of_what_is_contiguous_is_certain(size: str, made: str) -> None:
    program = PROGRAM.format(size=size, made=made)
    assert _raises(program)
    assert _certain(program)
