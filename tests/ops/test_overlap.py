"""Which in-place methods refuse an operand that lies in the memory they write, asked of torch for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from gradguard.engine.autograd.overlap import NO_SHARING, asks
from gradguard.ops.table import load

Operand = Callable[[torch.Tensor], torch.Tensor]
ROWS = torch.tensor([0, 1, 2])
PLACES = torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]])
CALLS: tuple[Callable[[torch.Tensor, torch.Tensor], tuple[object, ...]], ...] = (
    lambda x, y: (y,),
    lambda x, y: (y, torch.rand(3, 3)),
    lambda x, y: (torch.rand(3, 3), y),
    lambda x, y: (0, ROWS, y),
    lambda x, y: (0, PLACES, y),
    lambda x, y: (0, PLACES, y, "sum"),
    lambda x, y: (0, ROWS, y, "prod"),
    lambda x, y: (x > 0.7, y),
    lambda x, y: (PLACES, y),
    lambda x, y: ((ROWS,), y),
)
REFUSED = "some elements of the input tensor and the written-to tensor"
NO_OPERAND = frozenset({"set_", "resize_as_", "bernoulli_", "apply_", "map_", "map2_"})
"""Methods that read no numbers of the other tensor, or call back into Python."""


def ends(
    name: str, arguments: Callable[[torch.Tensor, torch.Tensor], tuple[object, ...]], of: Operand
) -> str:
    """How a call ends: `runs`, `refused`, or empty for any other error."""
    x = torch.rand(3, 3) + 0.5
    try:
        getattr(x, name)(*arguments(x, of(x)))
    except RuntimeError as error:
        return "refused" if REFUSED in str(error) else ""
    except (TypeError, IndexError, ValueError):
        return ""
    return "runs"


def observed() -> Iterator[tuple[str, bool, bool]]:
    """Name, whether it refuses the transpose of what it writes, and whether that very tensor."""
    for name in dir(torch.Tensor):
        if (
            name.endswith("_")
            and not name.endswith("__")
            and name not in NO_OPERAND
            and not name.startswith("_")
        ):
            for arguments in CALLS:
                if ends(name, arguments, lambda x: torch.rand(3, 3)) != "runs":
                    continue
                partly, wholly = ends(name, arguments, lambda x: x.T), ends(name, arguments, lambda x: x)
                if partly and wholly:
                    yield name, partly == "refused", wholly == "refused"


@pytest.mark.filterwarnings("ignore")
def test_the_engine_asks_where_torch_asks() -> None:
    table = load("2.13")
    seen = 0
    for name, partly, wholly in observed():
        op = table.op(f"Tensor.{name}")
        assert op is not None, name
        seen += 1
        assert asks(op) == partly, name
        assert (name in NO_SHARING) == wholly, name
    assert seen > 60
