"""What hangs on arguments that nobody knows is no error; what comes with all of them is one. Torch judges each."""

from __future__ import annotations

import textwrap
from itertools import product

import pytest

from gradguard.findings import Severity
from tests.engine.analysing import findings
from tests.oracle import judge_many

HELPERS = """
import torch


def work(kind, v):
    w = v if kind else v * 2
    w += 1
    return w


def rewrite(kind, v):
    if kind:
        v.mul_(2)


def big(x):
    return work(True, x)


def small(x):
    return work(True, x)
"""
FOUR = ("a", "b", "c", "d")

HANGS = {
    "one call after the other": (
        FOUR,
        """
        work(a, x).sum().backward()
        work(b, x).sum().backward()
        work(c, x).sum().backward()
        work(d, x).sum().backward()
        """,
    ),
    "writes of what is saved once": (
        FOUR,
        """
        y = x.exp()
        rewrite(a, y)
        rewrite(b, y)
        rewrite(c, y)
        rewrite(d, y)
        y.sum().backward()
        """,
    ),
    "writes of what is saved each time": (
        FOUR,
        """
        ys = [x.exp() for _ in range(4)]
        rewrite(a, ys[0])
        rewrite(b, ys[1])
        rewrite(c, ys[2])
        rewrite(d, ys[3])
        sum(ys).sum().backward()
        """,
    ),
    "a `while` that writes what is saved": (
        ("n",),
        """
        y = x.exp()
        while n > 0:
            y += 1
            n -= 1
        y.sum().backward()
        """,
    ),
    "a `while` that writes a leaf": (
        ("n",),
        """
        while n > 0:
            x += 1
            n -= 1
        """,
    ),
    "a `while` that saves": (
        ("n",),
        """
        y = x * 2
        while n > 0:
            y = y.exp()
            n -= 1
        y += 1
        y.sum().backward()
        """,
    ),
    "a `while` that frees": (
        ("n",),
        """
        y = x.exp().sum()
        while n > 0:
            y.backward()
            n -= 1
        y.backward()
        """,
    ),
}
"""Fine where all arguments are 0, and an error where all are 1."""

COMES = {
    "one call hangs on nothing": (
        FOUR,
        """
        work(a, x + 0)
        work(b, x + 0)
        work(c, x + 0)
        work(True, x)
        work(d, x + 0)
        """,
    ),
    "more calls than one": (
        (*FOUR, "e"),
        """
        rewrite(a, x + 0)
        rewrite(b, x + 0)
        rewrite(c, x + 0)
        rewrite(d, x + 0)
        big(x) if e else small(x)
        """,
    ),
    "one call or the other, among many choices": (
        (*FOUR, "e", "f"),
        """
        z = x + 0
        big(x) if f else small(x)
        if a:
            z = z * 2
        if b:
            z = z.exp()
        if c:
            z = z.sin()
        if d:
            z = z.cos()
        if e:
            z = z.tanh()
        """,
    ),
    "a write of many": (
        FOUR,
        """
        y = x.exp()
        rewrite(a, y)
        rewrite(b, y)
        rewrite(True, y)
        rewrite(c, y)
        rewrite(d, y)
        y.sum().backward()
        """,
    ),
    "a `while` that may not run": (
        ("n",),
        """
        y = x.exp()
        while n > 0:
            n -= 1
        y += 1
        y.sum().backward()
        """,
    ),
    "a `while` that always runs": (
        ("n",),
        """
        y = x.exp()
        while True:
            y += 1
            n -= 1
            if n < 0:
                break
        y.sum().backward()
        """,
    ),
    "a `while` whose first test is known": (
        ("n",),
        """
        y = x.exp()
        going = True
        while going:
            y += 1
            going = n > 0
            n -= 1
        y.sum().backward()
        """,
    ),
    "a `for`": (
        ("n",),
        """
        y = x.exp()
        for _ in range(n + 1):
            y += 1
        y.sum().backward()
        """,
    ),
}
"""An error whatever the arguments are."""


def program(arguments: tuple[str, ...], body: str) -> str:
    """A function of these arguments, which begins with a leaf."""
    begin = f"\n\ndef main({', '.join(arguments)}):\n    x = torch.ones(3, requires_grad=True)\n"
    return HELPERS + begin + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"


def outcomes(text: str, calls: list[tuple[int, ...]]) -> list[str]:
    """What torch does with the function for each of these arguments."""
    return [verdict.outcome for verdict in judge_many([f"{text}\nmain{call}\n" for call in calls])]


def severities(text: str) -> set[Severity]:
    """Of what is found of the kinds that raise."""
    return {one.severity for one in findings(text) if one.code in ("GG101", "GG102", "GG103", "GG203")}


@pytest.mark.parametrize("name", HANGS)
def test_what_hangs_on_arguments_is_found_and_no_error(name: str) -> None:
    arguments, body = HANGS[name]
    text = program(arguments, body)
    count = len(arguments)
    assert outcomes(text, [(0,) * count, (1,) * count]) == ["ok", "raises"]
    assert severities(text) == {Severity.WARNING}


@pytest.mark.parametrize("name", COMES)
def test_what_comes_with_all_arguments_is_an_error(name: str) -> None:
    arguments, body = COMES[name]
    text = program(arguments, body)
    calls = list(product((0, 1), repeat=len(arguments)))
    assert set(outcomes(text, [calls[0], calls[len(calls) // 3], calls[-1]])) == {"raises"}
    assert Severity.ERROR in severities(text)
