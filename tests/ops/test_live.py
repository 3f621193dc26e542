"""Rows against live torch: a fresh sample at every run, and proof that a wrong row would be noticed."""

import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gradguard.ops import shipped, table
from gradguard.ops.model import ALWAYS, NEVER, Alias, AliasKind, Op, Saved, Write
from tools.optable import generate, generate_run, validate
from tools.optable.validate_rows import Verdict, check_op

torch = pytest.importorskip("torch")
VERSION = ".".join(torch.__version__.split(".")[:2])
ROOT = Path(__file__).resolve().parents[2]
SEED = secrets.randbelow(2**31)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def test_a_sample_of_rows_holds() -> None:
    """In a process of its own: samples drawn at random can crash torch, which must not end the process that tests."""
    command = ["-m", "tools.optable.validate", "--rows-only", "--sample=60", "--calls=4", f"--seed={SEED}"]
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=500, check=False
    )
    said = f"python {' '.join(command)}\n{ran.stdout}{ran.stderr[-2000:]}"
    assert ran.returncode == 0, said
    claims = re.search(r"rows confirmed \((\d+) statements\)", ran.stdout)
    assert claims is not None, said
    assert int(claims[1]) > 500, f"hardly anything was checked: {said}"


def _crashing(on: set[tuple[str, int]]) -> Callable[[str, int, int], Verdict]:
    """Asks nothing of torch, and ends its worker at these names and seeds as a crash of torch does."""

    def ask(name: str, seed: int, calls: int) -> Verdict:
        if (name, seed) in on:
            os.kill(os.getpid(), signal.SIGKILL)
        return Verdict(name, claims=1)

    return ask


def test_samples_that_crash_torch_are_named_and_others_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.rows_hold(["a", "b", "c"], 5, 1, 1, _crashing({("b", 5)})) == 0
    said = capsys.readouterr().out
    assert f"b: the worker was lost (exit code {-signal.SIGKILL}) with seed 5; asked again with seed" in said
    assert "3 of 3 rows confirmed" in said


def test_a_row_that_cannot_be_asked_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    ask = _crashing({("b", 5), ("b", validate.KNOWN_GOOD)})
    assert validate.rows_hold(["a", "b", "c"], 5, 1, 1, ask) == 1
    assert "b: not checked: the worker was lost" in capsys.readouterr().out


def test_an_error_of_the_check_itself_is_wrong() -> None:
    def ask(name: str, seed: int, calls: int) -> Verdict:
        raise KeyError(name)

    assert validate.rows_hold(["a"], 5, 1, 1, ask) == 1


def test_a_worker_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_run, "SILENT", 0.5)

    def work(name: str) -> str:
        if name == "b":
            time.sleep(600)
        return name

    answers = list(generate_run.over(["a", "b", "c"], work, 2))
    assert [(name, result) for name, result, _ in answers] == [("a", "a"), ("b", None), ("c", "c")]
    assert isinstance(answers[1][2], generate_run.Lost)


def _op(name: str) -> Op:
    op = table.load(VERSION).op(name)
    assert op is not None
    return op


def _checked(op: Op) -> Verdict:
    return check_op(op, generate.callables()[op.name], random.Random(7), 8)


def _with(op: Op, **changes: object) -> Op:
    return replace(op, forms=tuple(replace(f, **changes) for f in op.forms))


@pytest.mark.parametrize(
    ("name", "changes", "complaint"),
    [
        ("torch.sin", {"saves": ()}, "saves input"),
        ("torch.exp", {"saves": ()}, "saves result"),
        ("torch.exp", {"saves": (Saved("result"), Saved("input"))}, "saves input"),
        ("torch.sum", {"frees": ALWAYS}, "frees"),
        ("torch.sin", {"frees": NEVER}, "frees"),
        ("Tensor.t", {"aliases": ()}, "shares memory"),
        ("torch.sin", {"aliases": (Alias("result", "input", AliasKind.VIEW),)}, "shares memory"),
        ("Tensor.contiguous", {"aliases": (Alias("result", "self", AliasKind.SAME),)}, "is self"),
        ("Tensor.sin_", {"writes": ()}, "counted write of self"),
        ("torch.sin", {"writes": (Write("input"),)}, "counted write of input"),
        ("torch.linalg.multi_dot", {"saves": (Saved("tensors"),)}, "saves tensors["),
        ("torch.linalg.qr", {"scattered": ()}, "may not be contiguous"),
        ("torch.sin", {"results": ("result0", "result1")}, "results"),
        ("torch.sin", {"nondifferentiable": ("result",)}, "requires grad"),
    ],
)
def test_a_wrong_row_is_noticed(name: str, changes: dict[str, object], complaint: str) -> None:
    assert not _checked(_op(name)).wrong
    verdict = _checked(_with(_op(name), **changes))
    assert any(text.startswith(complaint) or complaint in text for text in verdict.wrong), verdict


def test_a_wrong_condition_is_noticed() -> None:
    op = _op("torch.mul")
    saves = (Saved("input", ("input",)), Saved("other", ("other",)))
    form = replace(op.forms[0], saves=saves)
    assert _checked(replace(op, forms=(form, *op.forms[1:]))).wrong


@pytest.mark.parametrize(
    ("name", "role", "when"),
    [
        ("torch.fft.fft", "input", ("n=None", "norm=None")),
        ("torch.fft.rfft", "input", ("norm=None",)),
        ("torch.nn.functional.cross_entropy", "target", ("input",)),
        ("torch.nn.functional.linear", "input", ("weight",)),
        ("torch.nn.functional.group_norm", "input", ALWAYS),
    ],
)
def test_a_condition_that_only_the_samples_bear_out_is_noticed(
    name: str, role: str, when: tuple[str, ...]
) -> None:
    op = _op(name)
    assert not _checked(op).wrong
    saves = tuple(replace(s, when=when) if s.role == role else s for s in op.forms[0].saves)
    wrong = replace(op, forms=(replace(op.forms[0], saves=saves), *op.forms[1:]))
    found = [check_op(wrong, generate.callables()[name], random.Random(seed), 8).wrong for seed in range(12)]
    assert any(f"saves {role}" in text for texts in found for text in texts), found


@pytest.mark.parametrize(
    "name", ["torch.mul", "Tensor.max", "torch.nn.functional.dropout", "Tensor.__getitem__"]
)
def test_the_generator_gives_what_is_shipped(name: str) -> None:
    made = generate.make(name).op
    again = shipped.op_of(json.loads(shipped.row_text(made)), name, (), "", "")
    assert again.forms == tuple(
        replace(f, formulas=m.formulas) if not m.formulas else f for f, m in zip(_op(name).forms, again.forms)
    )
