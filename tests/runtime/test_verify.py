"""What `verify` finds to compare in functions of all kinds, and what it says where there is nothing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from tests.oracle import Died, shared_pool

from gradguard.main import main
from gradguard.runtime.verify import Comparison, Task, read_comparison

FUNCTIONS = '''\
import asyncio
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

W = torch.ones(4, requires_grad=True)


@dataclass
class Out:
    loss: torch.Tensor
    steps: int


def annotated(x: torch.Tensor, n: int = 3):
    y = x * n
    y += 1
    return Out(y.sum(), 3)


def documented(x, index):
    """Forgets.

    Args:
        x: (B, C) activations.
        index (LongTensor): of shape (B,)
    """
    y = x * W.sum()
    y[index] = 0
    return SimpleNamespace(parts=[y], more={"w": W * 2})


def around(k: int):
    w = torch.ones(4, requires_grad=True)

    def inner(x: torch.Tensor):
        y = x * w
        y.mul_(k)
        return y

    return inner


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.count = 0

    def forward(self, x):
        """x: (B, 2)"""
        self.count += 1
        return self.layer(x).relu_()

    @property
    def size(self):
        y = self.layer.weight.exp()
        y *= 2
        return y

    @staticmethod
    def plain(x: torch.Tensor):
        y = x.sin()
        y.zero_()
        return y


async def waits(x: torch.Tensor):
    await asyncio.sleep(0)
    y = x.exp()
    y.mul_(2)
    return y


def yields(x: torch.Tensor):
    y = x * 1
    while True:
        y += 1
        yield y.sum()


def whole(n: int):
    y = torch.arange(4)
    y += n
    return y > 3, y


def sparse(k: int = 2, table=torch.ones(5, 3).requires_grad_()):
    y = nn.functional.embedding(torch.tensor([1, 1, 2]), table, sparse=True)
    y *= k
    return y


def written_view(x: torch.Tensor):
    y = x * 2
    row = y[0]
    row.mul_(3)
    y[1] = row
    return y


def through_data(x: torch.Tensor):
    y = x * 2
    y.data.mul_(3)
    return y


def numpy_of_saved(x: torch.Tensor):
    y = x.exp()
    y.detach().numpy()[...] = 7
    return y


def not_a_number(x: torch.Tensor):
    y = x.exp()
    y.data[0, 0] = float("nan")
    return y.sum()


def computed_again(x: torch.Tensor):
    h = x * 1

    def part(h):
        h.mul_(2)
        return h.sin()

    return checkpoint(part, h, use_reentrant=False)


def hooked(x: torch.Tensor):
    a = x * 2

    def thrice(gradient):
        gradient.mul_(3)

    b = x * 4
    b.register_hook(thrice)
    c = a + b
    c += 1
    return c


def transformed(x: torch.Tensor):
    def inner(v):
        v = v * 1
        v.mul_(2)
        return v.sum()

    return torch.func.grad(inner)(x) * x


@torch.compile
def compiled(x: torch.Tensor):
    y = x * 2
    y += 1
    return y


@torch.jit.script
def scripted(x: torch.Tensor):
    y = x * 2
    y += 1
    return y


def within_func(x: torch.Tensor):
    def inner(v):
        v = v.exp()
        v.mul_(2)
        return v

    return torch.func.jacrev(inner)(x).sum()


def library(x: torch.Tensor):
    y = x * 2
    y += 1
    return torch.distributions.Normal(y, 1.0)


def steps(x: torch.Tensor):
    layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(layers.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        layers(x.detach()).sum().backward()
        optimizer.step()
    return layers


def catches(w=torch.ones(3, requires_grad=True)):
    try:
        w += 1
    except RuntimeError:
        raise ValueError("no") from None


def unsteady(x: torch.Tensor):
    import time

    y = x * 2
    y += 1
    return y, time.perf_counter()


def only_unsteady(x: torch.Tensor):
    import time

    x = x * 1
    x += 1
    return time.perf_counter()


def clamp_(x: torch.Tensor):
    x.clamp_(min=0)
    return x


def leaf(w=torch.ones(3, requires_grad=True)):
    w += 1
    return w * 2


def asks(x, mask, lr):
    x[mask] = lr
    return x


def returns_nothing(x: torch.Tensor):
    y = x * 2
    y += 1


def ends(x: torch.Tensor):
    x = x * 1
    x += 1
    raise SystemExit(3)


def raises(x: torch.Tensor):
    x = x * 1
    x += torch.ones(7)
    return x


def dies(x: torch.Tensor):
    import os

    x = x * 1
    x += 1
    os.abort()
'''
SCRIPT = """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
data = parser.parse_args().data
w = torch.ones(3, requires_grad=True)
y = {made}
y *= 2
(g,) = torch.autograd.grad(y.sum(), w)
"""
OVERWRITTEN = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace"
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All forms run in a forked worker, without a process that has to import torch first."""

    def compare(task: Task, timeout: float) -> Comparison:
        found = shared_pool().call(
            "gradguard.runtime.verify_child:compare", timeout=timeout, task=asdict(task)
        )
        assert not isinstance(found, Died), found
        return read_comparison(found)

    monkeypatch.setattr("gradguard.cli.verify.verify", compare)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.py").write_text(FUNCTIONS)


SAME = ["forward    same values (1 compared)", "backward   runs", "gradients  same (1 compared)"]


@pytest.mark.parametrize(
    ("function", "code", "lines"),
    [
        ("annotated", 0, ["(2 compared)", "gradients  same (1 compared)", "x=randn(4, 4, requires_grad=True)"]),
        ("documented", 0, ["(2 compared)", "gradients  same (2 compared)", "index=randint(0, 2, (2,))"]),
        ("around.inner", 0, ["gradients  same (2 compared)", "writes     line 41"]),
        ("Net.forward", 0, ["forward    same values (2 compared)", "gradients  same (3 compared)", "self=Net(width=2)"]),
        ("Net", 0, ["gradients  same (3 compared)"]),
        ("Net.size", 1, [f"backward   FAILS: {OVERWRITTEN}"]),
        ("Net.plain", 0, SAME),
        ("waits", 1, [f"backward   FAILS: {OVERWRITTEN}"]),
        ("yields", 0, ["(100 compared)", "note       of what it yields, the first 100 values are compared"]),
        ("whole", 0, ["(2 compared)", "backward   none: no result requires a gradient", "gradients  none compared"]),
        ("sparse", 0, SAME),
        ("written_view", 0, [*SAME, "writes     lines 100, 101"]),
        ("through_data", 0, [*SAME, "unseen     line 107 writes through .data: for autograd the new values are constants"]),
        ("numpy_of_saved", 1, ["gradients  FAILS: x differs", "unseen     line 113 shares memory with NumPy, which writes it"]),
        ("not_a_number", 1, ["gradients  FAILS: x differs in 1 of 16 elements, nan instead of"]),
        ("computed_again", 1, [f"backward   FAILS: {OVERWRITTEN}"]),
        ("hooked", 1, ["gradients  FAILS: x differs in 16 of 16 elements"]),
        ("transformed", 0, ["gradients  same"]),
        ("compiled", 0, SAME),
        ("scripted", 0, SAME),
        ("within_func", 1, [OVERWRITTEN]),
        ("library", 0, ["gradients  same (1 compared)"]),
        ("steps", 0, ["gradients  same (8 compared)"]),
        ("unsteady", 0, ["note       result[1] differs from run to run, and is left out", "memory     at most"]),
        ("clamp_", 0, [*SAME[1:], "note       x is overwritten, as is its purpose"]),
        ("leaf", 1, ["forward    FAILS: torch refuses a write, and not to a copy: line {leaf}: RuntimeError: a leaf Variable"]),
    ],
)  # fmt: skip
def test_what_is_compared(
    capsys: pytest.CaptureFixture[str], function: str, code: int, lines: list[str]
) -> None:
    assert main(["verify", f"file.py::{function}"]) == code
    said = capsys.readouterr().out
    written = FUNCTIONS[: FUNCTIONS.index("    w += 1\n    return w")].count("\n") + 1
    for line in lines:
        assert line.replace("{leaf}", str(written)) in said


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("returns_nothing", "nothing to compare: it returns no tensor and no number, and changes nothing that outlasts it"),
        ("only_unsteady", "nothing to compare: result differs from run to run; seed what it hangs on"),
        ("catches", "the program does not run: ValueError: no"),
        ("ends", "the program does not run: the program ended itself with exit code 3"),
        ("raises", "the program does not run: RuntimeError: The size of tensor a (4) must match"),
        ("raises", "# gradguard: inputs x=randn(4, 4, requires_grad=True).clone()"),
        ("Net.absent", "Net in file.py has no absent; it has __init__, forward, size, plain"),
    ],
)  # fmt: skip
def test_nothing_is_compared(capsys: pytest.CaptureFixture[str], function: str, message: str) -> None:
    assert main(["verify", f"file.py::{function}"]) == 2
    assert message in capsys.readouterr().err


def test_what_is_missing_is_asked_for_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "file.py::asks"]) == 2
    comment = "# gradguard: inputs x=randn(2, 3, requires_grad=True), mask=rand(2, 3) > 0.5, lr=0.1"
    line = FUNCTIONS[: FUNCTIONS.index("def asks")].count("\n") + 1
    assert capsys.readouterr().err.splitlines() == [
        "gradguard: error: file.py::asks: nothing says what x, mask, lr are",
        f"write above line {line} of file.py, with values of your own:",
        comment,
    ]
    changed = FUNCTIONS.replace("def asks", f"{comment.replace('=True)', '=True).clone()')}\ndef asks")
    Path("file.py").write_text(changed)
    assert main(["verify", "file.py::asks"]) == 1
    assert "arguments  FAILS: x is overwritten" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("made", "code", "line"),
    [("w * 2", 0, "gradients  same (1 compared)"), ("w.exp()", 1, f"backward   FAILS: {OVERWRITTEN}")],
)
def test_a_script_gets_its_arguments(
    capsys: pytest.CaptureFixture[str], made: str, code: int, line: str
) -> None:
    Path("script.py").write_text(SCRIPT.format(made=made))
    assert main(["verify", "script.py", "--", "--data", "x"]) == code
    assert line in capsys.readouterr().out
    assert main(["verify", "script.py"]) == 2
    assert "the program does not run: the program ended itself with exit code 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ("y[0, 0] = y[0, 0] * 1.01", "result differs in 1 of 16 elements"),
        ("y[0, 0] = float('nan')", "result differs in 1 of 16 elements, "),
        ("y = y.double()", "result is float32 instead of float64"),
        ("y = y[:1]", "result has shape (4, 4) instead of (1, 4)"),
    ],
)
def test_each_element_counts(capsys: pytest.CaptureFixture[str], other: str, line: str) -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor):\n    y = x * torch.logspace(-2, 3, 4)\n    {}\n    return y\n"
    Path("one.py").write_text(text.format("y += 0"))
    Path("other.py").write_text(text.format(other))
    assert main(["verify", "one.py::f", "--against", "other.py"]) == 1
    said = capsys.readouterr().out
    assert f"forward    FAILS: {line}" in said
