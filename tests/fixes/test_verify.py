"""`gradguard verify` runs both versions in real torch and says which of the three checks hold."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import gradguard
from gradguard.main import main
from gradguard.runtime.verify import Comparison, Task, read_comparison
from tests.cli.processes import alive, eventually
from tests.oracle import shared_pool

FUNCTIONS = """\
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


# gradguard: inputs x=randn(200, 200, requires_grad=True)
def good(x):
    y = x * 2
    y += 1
    return F.relu(y, inplace=True).sum()


# gradguard: inputs x=randn(8, 8, requires_grad=True)
def saved(x):
    y = x.exp()
    y += 1
    return y.sum()


# gradguard: inputs x=randn(8), n=2
def overwrites(x, n):
    x.mul_(n)
    return x


# gradguard: inputs x=randn(8, 8, requires_grad=True)
def seen_twice(x):
    y = x * 2
    old = y
    y += 1
    return (old * y).sum()


# gradguard: inputs x=randn(100, 100, requires_grad=True)
def plain(x: torch.Tensor):
    y = x * 2
    y = y + 1
    return y


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.lin = nn.Linear(width, width)

    # gradguard: inputs self=Net(6), x=randn(2, 6)
    def forward(self, x):
        x = self.lin(x)
        x += 1
        return x


# gradguard: inputs x=randn(3, oops)
def wrong(x):
    x += 1
    return x


# gradguard: inputs x=randn(3)
def slow(x):
    x += 1
    time.sleep(60)
    return x


# gradguard: inputs x=randn(3)
def forks(x):
    x += 1
    import os, pathlib
    number = os.fork()
    if not number:
        time.sleep(3600)
    pathlib.Path("forked").write_text(str(number))
    while pathlib.Path("wait").exists():
        pass
    return x


# gradguard: inputs x=randn(3)
def nothing(x):
    return x
"""
SCRIPT = "import torch\n\nw = torch.rand(3, requires_grad=True)\ny = w * 2\ny += 1\ny.sum().backward()\n"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions run in a forked worker, without a process that has to import torch first."""

    def compare(task: Task, timeout: float) -> Comparison:
        found = shared_pool().call(
            "gradguard.runtime.verify_child:compare", timeout=timeout, task=asdict(task)
        )
        return read_comparison(found)

    monkeypatch.setattr("gradguard.cli.verify.verify", compare)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.py").write_text(FUNCTIONS)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


@pytest.mark.parametrize(
    ("what", "code", "lines"),
    [
        (
            "file.py::good",
            0,
            [
                "forward    same values (1 compared)",
                "backward   runs",
                "gradients  same (1 compared)",
                "writes     lines 11, 12",
                "memory     at most ",
                "tolerance  1.3e-06 of each element (float32)",
            ],
        ),
        (
            "file.py::saved",
            1,
            ["forward    same values", "backward   FAILS: RuntimeError: one of the variables needed"],
        ),
        ("file.py::overwrites", 1, ["arguments  FAILS: x is overwritten"]),
        ("file.py::seen_twice", 0, ["forward    same values", "gradients  same (1 compared)"]),
        ("file.py::plain", 0, ["made in place, compared with itself", "same values"]),
        ("file.py::Net.forward", 0, ["gradients  same (2 compared)"]),
        ("script.py", 0, ["compared with itself out of place", "gradients  same (1 compared)"]),
    ],
)
def test_what_is_said(
    at_once: None, folder: Path, capsys: pytest.CaptureFixture[str], what: str, code: int, lines: list[str]
) -> None:
    assert main(["verify", what]) == code
    said = capsys.readouterr().out
    assert said.startswith(what)
    for line in lines:
        assert line in said


def test_memory_saved_is_measured(at_once: None, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.py").write_text(FUNCTIONS.replace("y = y + 1", "y = (y + 1).clone() + 0 * y.clone()"))
    assert main(["verify", "file.py::plain", "--against", "other.py"]) == 0
    said = capsys.readouterr().out
    assert "compared with other.py" in said
    assert "KiB" in said
    assert "at most 78.1 KiB instead of 156.3 KiB: 78.1 KiB (50 %) saved" in said


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("file.py::missing", "file.py has no missing; it has good, saved"),
        ("file.py::nothing", "it writes nothing in place, and no in-place form of it is proven"),
        ("file.py::wrong", "input x: NameError: name 'oops' is not defined"),
        ("none.py", "none.py"),
    ],
)
def test_what_cannot_be_run(
    at_once: None, folder: Path, capsys: pytest.CaptureFixture[str], what: str, message: str
) -> None:
    assert main(["verify", what]) == 2
    assert message in capsys.readouterr().err


def test_inputs_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file.py").write_text("import torch\n\n\n# gradguard: inputs 3, (\ndef f(x):\n    x += 1\n")
    assert main(["verify", "file.py::f"]) == 2
    assert "file.py:4: inputs are written as name=expression, ..." in capsys.readouterr().err


def test_a_process_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "file.py::good"]) == 0
    assert "backward   runs" in capsys.readouterr().out


def test_a_time_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "file.py::slow", "--timeout", "2"]) == 2
    assert "stopped after 2 s" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("when", ["while it starts", "while it runs"])
def test_a_killed_command_leaves_no_program_behind(folder: Path, when: str) -> None:
    (folder / "wait").touch()
    command = subprocess.Popen(
        [sys.executable, "-m", "gradguard", "verify", "file.py::forks"],
        env={**os.environ, "PYTHONPATH": str(Path(gradguard.__file__).parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: bool(alive(parent=command.pid)))
        (leader,) = alive(parent=command.pid)
        assert when != "while it runs" or eventually(lambda: bool(read(folder / "forked")))
    finally:
        command.kill()
        command.wait()
    assert eventually(lambda: not alive(session=leader))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_what_the_program_leaves_running_ends_and_is_not_waited_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "file.py::forks", "--timeout", "600"]) == 1
    assert "x is overwritten" in capsys.readouterr().out
    assert eventually(lambda: int(read(folder / "forked")) not in alive())


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
