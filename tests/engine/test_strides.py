"""Results of ops on a transposed matrix: where the engine says how they lie, torch lays them out so."""

from __future__ import annotations

import pytest
import torch

from gradguard.engine.autograd.layout import ROW_BY_ROW, keeps_order
from gradguard.ops.table import load

OPERANDS = ((), (2.0,), (0.25,), (torch.rand(4, 3).t().contiguous().t(),), (torch.rand(4, 3) > 0.5, 0.5))


def results(name: str) -> list[torch.Tensor]:
    """What the method gives of a transposed matrix, for each kind of operand it takes."""
    found = []
    for operands in OPERANDS:
        try:
            made = getattr(torch.rand(3, 4).t(), name)(*operands)
        except (RuntimeError, TypeError, IndexError, ValueError, AttributeError):
            continue
        if isinstance(made, torch.Tensor) and made.shape == (4, 3):
            found.append(made)
    return found


@pytest.mark.filterwarnings("ignore")
def test_elementwise_results_keep_the_order_of_the_dimensions() -> None:
    table = load("2.13")
    seen = 0
    for name in dir(torch.Tensor):
        op = table.op(f"Tensor.{name}") if not name.startswith("_") and not name.endswith("_") else None
        if op is None or not keeps_order(op):
            continue
        for made in results(name):
            seen += 1
            assert made.stride() == (1, 4), name
    assert seen > 100


def test_these_always_lie_row_by_row() -> None:
    x = torch.rand(3, 4).t()
    for name in ROW_BY_ROW:
        arguments = ((12,),) if name == "reshape" else ()
        assert getattr(x, name)(*arguments).is_contiguous(), name
