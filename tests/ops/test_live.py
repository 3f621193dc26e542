"""Rows against live torch: a fresh sample at every run, and proof that a wrong row would be noticed."""

import json
import random
import secrets
import warnings
from dataclasses import replace

import pytest

from gradguard.ops import generate, shipped, table, validate
from gradguard.ops.model import ALWAYS, NEVER, Alias, AliasKind, Op, Saved, Write
from gradguard.ops.validate_rows import Verdict, check_module, check_op

torch = pytest.importorskip("torch")
VERSION = ".".join(torch.__version__.split(".")[:2])
SEED = secrets.randbelow(2**31)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def test_a_sample_of_rows_holds() -> None:
    chooser = random.Random(SEED)
    names = [n for n in table.load(VERSION).names() if validate.checkable(n)]
    verdicts = []
    for name in chooser.sample(names, 60):
        op, row = table.load(VERSION).op(name), table.load(VERSION).module(name)
        if op is not None:
            verdicts.append(check_op(op, generate.callables()[name], chooser, 4))
        elif row is not None:
            verdicts.append(check_module(row, chooser, 3))
    wrong = [(v.name, text) for v in verdicts for text in v.wrong]
    assert not wrong, f"seed {SEED}: {wrong}"
    assert sum(v.claims for v in verdicts) > 500, f"seed {SEED}: hardly anything was checked"


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
