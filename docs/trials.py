"""The smallest program that shows what an operation saves: what it saved is written before the backward that needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradguard.check.api import check
from gradguard.check.settings import DEFAULTS
from gradguard.findings import Severity
from gradguard.ops.listing import Line
from gradguard.source.text import Source

ROOMS = ("torch", "torch.special", "torch.linalg", "torch.nn.functional", "Tensor")
"""Where the operations are that take tensors of two dimensions."""
PROGRAM = """import torch

x = 2 * torch.rand(3, 3, requires_grad=True)
{more}y = {call}
{written} += 1  # {call} saved it
y.sum().backward()
"""


def program(line: Line) -> str:
    """A program that raises since this operation saved what is written; empty where none of the simple ones does."""
    for text in candidates(line):
        report = check(Source("program.py", text), DEFAULTS)
        errors = [each.code for each in report.findings if each.severity is Severity.ERROR]
        if errors == ["GG101"] and not report.limits:
            return text
    return ""


def candidates(line: Line) -> Iterator[str]:
    """Programs that call an operation with one tensor, and with two."""
    room, _, name = line.name.rpartition(".")
    if room not in ROOMS or not line.saves or name.endswith("_"):
        return
    written = "y" if re.search(r"`(result|out)\w*`", line.saves) else "x"
    for rest, more in (("", ""), ("z", "z = torch.rand(3, 3, requires_grad=True)\n")):
        call = (
            f"x.{name}({rest})"
            if room == "Tensor"
            else f"{line.name}({', '.join(filter(None, ('x', rest)))})"
        )
        yield PROGRAM.format(call=call, more=more, written=written)
