"""Where a needed fact is only assumed nothing is an error; where the twin has the fact, it is one. Torch judges both."""

from __future__ import annotations

import textwrap

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Severity
from gradguard.source.text import Source
from tests.oracle import judge

PAIRS = {
    "a tensor stands for the flag": (
        """
        x = torch.ones(3, requires_grad=True)
        y = F.leaky_relu(x, 0.1, {})
        y.neg_()
        y.sum().backward()
        """,
        "torch.zeros(())",
        "inplace=True",
    ),
    "a write that only a flag asks for": (
        """
        weight = torch.rand(3, requires_grad=True)
        total = F.silu(torch.full((3,), 0.5), {})
        total[:] = total * 2
        for _ in range(2):
            total += weight
            total.sum().backward()
        """,
        "torch.rand(())",
        "False); weight = weight.exp(",
    ),
    "a step without a gradient": (
        """
        weight = torch.rand(3, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        size = weight.norm({})
        for _ in range(2):
            size.backward(retain_graph=True)
            optimizer.step()
        """,
        "0",
        "3",
    ),
    "a view that is only compared": (
        """
        x = torch.rand(3, requires_grad=True)
        with torch.no_grad():
            row = x[None]
            row.copy_(torch.tensor(0.5))
        F.hinge_embedding_loss({}, row, reduction="sum")
        """,
        "torch.ones(1, 3, dtype=torch.long)",
        "row * 2",
    ),
    "one row or several": (
        """
        x = torch.rand({}, requires_grad=True).cov()
        rows = (x * 2).flatten()
        for _ in rows:
            F.elu(rows, inplace=True)
        rows.sum().backward()
        """,
        "3",
        "3, 3",
    ),
}


def program(name: str, fill: int) -> str:
    """The program with one of its two fillings."""
    text, *fillings = PAIRS[name]
    body = textwrap.indent(textwrap.dedent(text).format(fillings[fill]), "    ")
    return f"import torch\nimport torch.nn.functional as F\n\ndef main():\n{body}\nmain()\n"


def errors(text: str) -> list[str]:
    """Codes of the findings that are errors."""
    found = check(Source("/w/main.py", text), Settings()).findings
    return [one.code for one in found if one.severity is Severity.ERROR]


@pytest.mark.parametrize("name", PAIRS)
def test_what_torch_runs_has_no_error(name: str) -> None:
    text = program(name, 0)
    assert judge(text).outcome == "ok"
    assert errors(text) == []


@pytest.mark.parametrize("name", PAIRS)
def test_what_torch_refuses_is_found(name: str) -> None:
    text = program(name, 1)
    assert judge(text).outcome == "raises"
    assert check(Source("/w/main.py", text), Settings()).findings


def test_what_one_way_through_only_may_do_is_not_certain() -> None:
    text = (
        "import torch\n\nx = torch.rand(3, 3, requires_grad=True)\n(b,) = x.vsplit(1)\n"
        "if b.dim() == 2:\n    b = b.t().reshape(-1)\nb.relu_()\n"
    )
    exec(compile(text, "program.py", "exec"), {})
    found = check(Source("program.py", text), Settings()).findings
    assert all(one.severity is not Severity.ERROR for one in found)
