"""Which in-place methods write memory whose own elements overlap, asked of torch for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gradguard.engine.autograd.machine import OVERLAP_ALLOWED

ROWS = torch.tensor([0, 1, 2])
PLACES = torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]])
TARGETS: tuple[tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]], ...] = (
    (lambda *sizes: torch.rand(*sizes) + 0.5, (3, 3), (3, 1)),
    (lambda *sizes: torch.rand(*sizes) + 0.5, (3,), (1,)),
    (lambda *sizes: torch.rand(*sizes) + 0.5, (3, 3, 3), (3, 3, 1)),
    (lambda *sizes: torch.randint(1, 5, sizes), (3, 3), (3, 1)),
    (lambda *sizes: torch.rand(*sizes) > 0.5, (3, 3), (3, 1)),
    (lambda *sizes: torch.rand(*sizes, dtype=torch.cfloat), (3, 3), (3, 1)),
)
"""What makes a tensor, its sizes, and those of one that is then expanded to them."""
CALLS: tuple[Callable[[torch.Tensor], tuple[Any, ...]], ...] = (
    lambda x: (),
    lambda x: (0,),
    lambda x: (1,),
    lambda x: (0.5,),
    lambda x: (0, 1),
    lambda x: (2, 2),
    lambda x: (0.2, 0.1),
    lambda x: ((3, 3),),
    lambda x: (torch.rand(3, 3),),
    lambda x: (torch.randint(1, 4, (3, 3)),),
    lambda x: (torch.rand(3, 3) > 0.5,),
    lambda x: (torch.rand(3, 3), torch.rand(3)),
    lambda x: (torch.rand(3, 3), torch.rand(3, 3)),
    lambda x: (torch.rand(3), torch.rand(3)),
    lambda x: (torch.rand(3, 3, 3), torch.rand(3, 3, 3)),
    lambda x: (torch.tensor(1.0), torch.tensor(2.0)),
    lambda x: (0, ROWS, torch.rand(3, 3)),
    lambda x: (0, ROWS, 1.0),
    lambda x: (0, PLACES, torch.rand(3, 3)),
    lambda x: (0, PLACES, torch.rand(3, 3), "sum"),
    lambda x: (0, ROWS, torch.rand(3, 3), "prod"),
    lambda x: (2, 0, 1.0),
    lambda x: (x > 0.7, 1.0),
    lambda x: (x > 0.7, torch.rand(3, 3)),
    lambda x: (PLACES, torch.rand(3, 3)),
    lambda x: ((ROWS,), torch.tensor(1.0)),
)
NO_WRITE = frozenset({"as_strided_", "requires_grad_", "share_memory_"})
"""Methods that write no elements."""
BY_DTYPE = frozenset({"conj_physical_"})
"""Writes of complex numbers only: what is real stays as it is, and nothing is asked."""
FUNCTIONS: dict[str, Callable[[torch.Tensor], object]] = {
    "threshold_": lambda x: F.threshold_(x, 0.7, 0.0),  # type: ignore[attr-defined]
    "threshold": lambda x: F.threshold(x, 0.7, 0.0, inplace=True),
    "Threshold": lambda x: nn.Threshold(0.7, 0.0, inplace=True)(x),
    "zeros_": nn.init.zeros_,
    "ones_": nn.init.ones_,
    "constant_": lambda x: nn.init.constant_(x, 2.0),
}


def ends(call: Callable[[torch.Tensor], object], x: torch.Tensor) -> str:
    """How a call ends: `runs`, `refused`, or empty for any other error."""
    try:
        call(x)
    except RuntimeError as error:
        text = str(error)
        return "refused" if "written-to" in text and "single memory location" in text else ""
    except (TypeError, IndexError, ValueError):
        return ""
    return "runs"


def observed() -> Iterator[tuple[str, set[str]]]:
    """Name and how it ends on expanded memory, for calls that run on other memory."""
    for name in dir(torch.Tensor):
        if not name.endswith("_") or name.endswith("__") or name.startswith("_") or name in NO_WRITE:
            continue
        found = set()
        for make, sizes, before in TARGETS:
            for given in CALLS:

                def call(
                    x: torch.Tensor, name: str = name, given: Callable[..., tuple[Any, ...]] = given
                ) -> object:
                    return getattr(x, name)(*given(x))

                if ends(call, make(*sizes)) == "runs":
                    found.add(ends(call, make(*before).expand(*sizes)))
        if found - {""}:
            yield name, found - {""}


@pytest.mark.filterwarnings("ignore")
def test_the_engine_lets_pass_what_torch_lets_pass() -> None:
    seen = dict(observed())
    allowed = {name for name, found in seen.items() if found == {"runs"}}
    refused = {name for name, found in seen.items() if "refused" in found}
    assert allowed == (OVERLAP_ALLOWED & set(seen)) - BY_DTYPE
    assert refused & OVERLAP_ALLOWED == BY_DTYPE
    assert len(allowed) > 15
    assert len(refused) > 100
    assert OVERLAP_ALLOWED - set(seen) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_are_let_pass(name: str) -> None:
    assert ends(FUNCTIONS[name], torch.rand(3, 1).expand(3, 3)) == "runs"
