"""Makers of one file share the ways of the tests that they meet, as long as nothing is on the tape."""

from __future__ import annotations

import ast

from gradguard.engine import Analysis, analyse
from gradguard.ops import table
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES, analysed, findings

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width, settings):
        super().__init__()
        self.body = nn.Linear(width, width)
        if settings.deep:
            self.deep = nn.Linear(width, width)
        self.head = None if settings.open else nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x))

"""
MAKER = """
def net_{n}(settings):
    return Net({n}, settings)

"""
LEAVES = """
import os
import torch


def leaf():
    if os.environ.get("PLAIN"):
        return torch.zeros(3)
    return torch.zeros(3, requires_grad=True)


def first():
    made = leaf()
    made.add_(1)
    return made


def second():
    made = leaf()
    made.add_(2)
    return made
"""


def steps(analysis: Analysis) -> dict[str, int]:
    """What each function took."""
    return {key.name: one.steps for key, one in analysis.records.items() if isinstance(key, ast.FunctionDef)}


def test_ways_that_one_maker_went_are_not_gone_by_the_next() -> None:
    took = steps(analysed(NET + MAKER.format(n=8) + MAKER.format(n=9) + MAKER.format(n=10)))
    assert took["net_8"] > 2 * took["net_9"] > 0
    assert took["net_9"] == took["net_10"]


def test_a_way_that_no_other_maker_had_is_gone() -> None:
    text = NET + MAKER.format(n=8) + MAKER.format(n=9)
    asks = text.replace("return Net(9", "if settings.also:\n        Net(1, settings)\n    return Net(9")
    assert steps(analysed(asks))["net_9"] > 1.5 * steps(analysed(text))["net_9"] > 0


def test_a_way_that_shows_something_is_gone_by_each() -> None:
    found = [(each.code, each.span.line) for each in findings(LEAVES)]
    lines = LEAVES.split("\n")
    assert found == [("GG102", lines.index(f"    made.add_({n})") + 1) for n in (1, 2)]


def test_a_maker_whose_neighbour_changed_is_run_as_if_alone() -> None:
    text = NET + MAKER.format(n=8) + MAKER.format(n=9)
    source = Source("program.py", text)
    before = analyse(source, table.load(), NO_FILES)
    for changed in (
        text.replace("Net(8, settings)", "8"),
        text,
        text + MAKER.format(n=7),
        text.replace("Net(9", "Net(7"),
    ):
        source = Source("program.py", changed, source)
        before = analyse(source, table.load(), NO_FILES, before)
        assert steps(before) == steps(analyse(Source("program.py", changed), table.load(), NO_FILES))
