"""Makers of one network in many sizes: the costly ones stand for one another, and the report says so."""

from __future__ import annotations

import ast

import pytest

from gradguard.check.workspace import EMPTY
from gradguard.engine import Analysis, analyse
from gradguard.engine.driver.alike import COSTLY, TOGETHER, shape
from gradguard.ops import table
from gradguard.source.text import Source

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, sizes, args):
        super().__init__()
        width = args["width"]
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(sizes)])
        for layer in self.layers:
            for _ in range({work}):
                for _ in range({work}):
                    for _ in range({work}):
                        width = width + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1

"""

MAKER = """
def net_{n}(**kwargs):
    args = dict(width={n}, act=("relu", {n}))
    return Net({n}, args, **kwargs)

"""


def analysed(text: str) -> Analysis:
    """What the engine makes of a file."""
    return analyse(Source("/w/nets.py", text), table.load(None), EMPTY)


def messages(text: str) -> list[str]:
    """Limits of a file."""
    return [limit.message for limit in analysed(text).limits]


@pytest.mark.parametrize(("work", "left_out"), [(16, 2), (1, 0)])
def test_what_is_left_out_is_told_and_only_where_it_is_costly(work: int, left_out: int) -> None:
    text = NET.format(work=work) + "".join(MAKER.format(n=16 - n) for n in range(4))
    found = messages(text)
    assert found == ["left out: like `net_16` but for constants, and as costly"] * left_out


def test_what_does_more_than_make_is_never_left_out() -> None:
    train = "def train_{n}():\n    net = Net({n}, dict(width=4))\n    for _ in range(3):\n        net.layers[0].weight.sum().backward()\n\n"
    assert not messages(NET.format(work=16) + "".join(train.format(n=16 - n) for n in range(4)))


def test_an_edit_gives_the_answer_of_a_cold_run() -> None:
    text = NET.format(work=16) + "".join(MAKER.format(n=16 - n) for n in range(4))
    edited = text.replace("def net_16(**kwargs):", "def net_16(deep=False, **kwargs):")
    first = Source("/w/nets.py", text)
    before = analyse(first, table.load(None), EMPTY)
    warm = analyse(Source("/w/nets.py", edited, first), table.load(None), EMPTY, before)
    assert warm.limits == analysed(edited).limits


def test_of_silent_makers_those_with_other_options_are_left_out() -> None:
    deep = "def deep(**kwargs):\n    args = dict(width=4, deep=True)\n    return Net(7, args, options=None, **kwargs)\n"
    net = NET.replace("sizes, args", "sizes, args, options=None").format(work=16)
    two = MAKER.format(n=15) + MAKER.format(n=16)
    assert messages(net + two + deep) == ["left out: like `net_15` but for constant options, and as costly"]
    writes = net.replace("width = args", "torch.ones(3, requires_grad=True).sin().add_(1); width = args")
    assert not messages(writes + two + deep)


def test_silent_makers_share_a_budget() -> None:
    """Each of another shape, so that none stands for another."""
    kinds = "".join(
        f"def kind_{n}(**kwargs):\n    args = dict(width=4)\n    return Net(9, args{', 0' * n}, **kwargs)\n"
        for n in range(40)
    )
    net = NET.replace("sizes, args", "sizes, args, *others").format(work=16)
    records = [
        one
        for key, one in analysed(net + kinds).records.items()
        if getattr(key, "name", "").startswith("kind_")
    ]
    assert len(records) == 40
    assert records[0].steps > COSTLY
    assert [one.budget.whole for one in records[-3:]] == [COSTLY] * 3
    assert sum(one.steps for one in records) < TOGETHER + 40 * COSTLY
    stopped = "stopped early: this code needs more steps than the budget allows"
    assert messages(net + kinds).count(stopped) >= 3


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("return f(3, 'a')", "return f(4, 'b')", True),
        ("return f(dict(a=1, b=(2, 3)))", "return f(dict(c=-1))", True),
        ("return f([1, 2])", "return f((3,))", True),
        ("return f(x)", "return f(y)", False),
        ("return f(dict(a=x))", "return f(dict(a=y))", False),
        ("return f(a=1)", "return f(b=1)", False),
        ("return f(a=1, c=x)", "return f(c=x)", False),
        ("return f(1 + 2)", "return g(3)", False),
    ],
)
def test_shapes(one: str, other: str, alike: bool) -> None:
    shapes = []
    for body in (one, other):
        node = ast.parse(f"def made(x, y):\n    {body}\n").body[0]
        assert isinstance(node, ast.FunctionDef)
        shapes.append(shape(node))
    assert (shapes[0] == shapes[1]) is alike


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("return f(a=1, c=x)", "return f(c=x, b=2)", True),
        ("return f(dict(a=x, b=2))", "return f(dict(a=x))", True),
        ("return f(dict(a=x))", "return f(dict(b=x))", False),
        ("return f(a=x)", "return f(a=y)", False),
        ("return f(1, a=2)", "return f(a=2)", False),
        ("'says'; return f(1)", "return f(2)", True),
    ],
)
def test_shapes_without_options(one: str, other: str, alike: bool) -> None:
    shapes = []
    for body in (one, other):
        node = ast.parse(f"def made(x, y):\n    {body}\n").body[0]
        assert isinstance(node, ast.FunctionDef)
        shapes.append(shape(node, options=False))
    assert (shapes[0] == shapes[1]) is alike
