"""What a test of one room needs: a run of its own, and a tensor that a program has made."""

from __future__ import annotations

import ast

from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.driver.wiring import PORTS
from gradguard.engine.state.path import Oracle
from gradguard.engine.state.run import Run
from gradguard.ops import table
from tests.engine.analysing import NO_FILES

PLACE = Place("program.py", ast.Pass())


def new_run(steps: int = 1000) -> Run:
    """A run of the first path of an entry."""
    return Run(table.load(), Oracle(), [steps], NO_FILES, PORTS)


def leaf(run: Run, *, requires_grad: bool = True) -> Tensor:
    """A tensor of three numbers, as `torch.rand(3)` gives it."""
    made = run.tensor(PLACE)
    made.requires_grad, made.dtype, made.shape = requires_grad, "float32", (3,)
    return made
