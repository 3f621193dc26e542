"""What outlasts a statement and hangs on its grad mode is not put under `torch.no_grad()` unasked; torch shows why."""

from __future__ import annotations

import pytest

from gradguard.findings import Applicability
from tests.fixes.test_needed_graphs import judged, plans

HEAD = """import contextlib
import functools
import torch
from torch import nn
from torch.nn.utils import parametrize

torch.manual_seed(0)
x = torch.rand(3, 3, requires_grad=True)
base = torch.rand(3, 3, requires_grad=True)
net = nn.Linear(3, 3)
net.eval()
"""
CACHED = """
{decorator}
def scale({parameters}):
    return {value}


for step in range(2):
    out = net(x.detach()) * scale({arguments})
    print(out.sum().item())
(scale({arguments}) * base).sum().backward()
"""
EVALUATED = """for step in range(1):
    out = net(x.detach())
    print(out.sum().item())
    {last}
{after}
"""
MIRRORED = """
class Mirrored(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


parametrize.register_parametrization(net, "weight", Mirrored())
with {manager}:
    for step in range(2):
        out = net(x.detach())
        print(out.sum().item())
    net(x.detach()).sum().backward()
"""


def cached(decorator: str, value: str = "base.exp()", parameters: str = "", arguments: str = "") -> str:
    return HEAD + CACHED.format(decorator=decorator, value=value, parameters=parameters, arguments=arguments)


def evaluated(last: str, after: str = "with torch.enable_grad():\n    x.exp().sum().backward()") -> str:
    return HEAD + EVALUATED.format(last=last, after=after)


OFF = "x.add_(1)\nprint(x)"
"""What torch takes only while grad mode is off."""

LASTS = {
    "a cached graph": cached("@functools.cache"),
    "a cached graph of a size": cached("@functools.lru_cache", "base.exp() * n", "n", "2"),
    "a cache that is called": cached("@functools.lru_cache(maxsize=None)", "base.exp() * n", "n", "2"),
    "a cache by hand": cached("", "base.exp()").replace(
        "\n\nfor step", "\nscale = functools.cache(scale)\nfor step"
    ),
    "weights that are cached": HEAD + MIRRORED.format(manager="parametrize.cached()"),
}
"""Wrapped as a whole or in part, each of these loses a gradient."""
SWITCHES = {
    "a switch": evaluated("torch.set_grad_enabled(False)", OFF),
    "a switch of the binding": evaluated("torch._C._set_grad_enabled(False)", OFF),
    "a switch in a function": evaluated("stop()", OFF).replace(
        "import torch\n", "import torch\n\n\ndef stop():\n    torch.set_grad_enabled(False)\n\n\n", 1
    ),
    "a mode that is entered": evaluated("torch.no_grad().__enter__()", OFF),
    "a mode that a stack enters": evaluated("stack.enter_context(torch.no_grad())", OFF).replace(
        "net.eval()\n", "net.eval()\nstack = contextlib.ExitStack()\n"
    ),
}
"""The loop cannot be wrapped, its first statement can."""
QUIET = {
    "a cached number": cached("@functools.cache", "2.0"),
    "a cached mask": cached("@functools.cache", "torch.ones(3)"),
    "no cache": cached(""),
    "weights that are computed each time": HEAD + MIRRORED.format(manager="contextlib.nullcontext()"),
    "a switch to what it is": evaluated("torch.set_grad_enabled(True)"),
    "a switch and back": evaluated("with torch.set_grad_enabled(False):\n        print(net(x).sum().item())"),
}


@pytest.mark.parametrize("name", LASTS)
def test_unsafe_where_a_graph_is_put_away(name: str) -> None:
    found = plans(LASTS[name])
    assert [plan.kind for plan in found if plan.applicability is Applicability.SAFE] == []
    assert found


@pytest.mark.parametrize("name", SWITCHES)
def test_no_loop_that_switches_the_mode_is_wrapped(name: str) -> None:
    found = [plan for plan in plans(SWITCHES[name]) if plan.applicability is Applicability.SAFE]
    assert found
    assert {plan.span.end_line - plan.span.line for plan in found} == {0}


@pytest.mark.parametrize("name", QUIET)
def test_safe_where_nothing_lasts(name: str) -> None:
    plan = plans(QUIET[name])[0]
    assert plan.applicability is Applicability.SAFE
    assert plan.span.end_line > plan.span.line


def test_torch_agrees() -> None:
    wrong = judged(LASTS, {name: plans(text)[0] for name, text in LASTS.items()})
    assert [name for name, found in wrong.items() if not found] == []
    right = {**QUIET, **SWITCHES}
    found = judged(right, {name: plans(text)[0] for name, text in right.items()})
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


UNREAD = """import torch
from torch import nn
from elsewhere import accuracy_score, ask, Attack

net = nn.Linear(3, 3)
net.eval()
{before}
for step in range(2):
    out = net(torch.rand(2, 3))
    {line}
"""
MAY_DIFFERENTIATE = {
    "given what it computed": ("", "ask(out)"),
    "given a part": ("", "ask([out.sum(), 1])"),
    "given the network": ("", "ask(net, step)"),
    "made of the network": ("attack = Attack(net)", "print(attack(step))"),
}
CANNOT = {
    "given numbers": ("", "ask(out.sum().item())"),
    "given no graph": ("", "ask(out.detach())"),
    "a measure": ("", "print(accuracy_score(out, step))"),
    "another one": ("attack = Attack(3)", "print(attack(step))"),
    "before": ("print(Attack(net)(1))", "print(out.sum().item())"),
}


@pytest.mark.parametrize("name", MAY_DIFFERENTIATE)
def test_no_loop_is_wrapped_where_code_that_is_not_read_may_differentiate(name: str) -> None:
    before, line = MAY_DIFFERENTIATE[name]
    found = plans(UNREAD.format(before=before, line=line))
    assert found
    assert [p for p in found if p.applicability is Applicability.SAFE and p.span.end_line > p.span.line] == []


@pytest.mark.parametrize("name", CANNOT)
def test_a_loop_is_wrapped_where_it_cannot(name: str) -> None:
    before, line = CANNOT[name]
    plan = plans(UNREAD.format(before=before, line=line))[0]
    assert plan.applicability is Applicability.SAFE
    assert plan.span.end_line > plan.span.line
