"""The flag of a module that works in place is not dropped unasked where the program sees the difference; torch shows it."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.oracle import shared_pool

HEAD = """import logging
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(3, 3, requires_grad=True)
seen = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Sigmoid(), nn.Hardtanh(0.2, 0.6, inplace=True))

    def forward(self, t):
        return self.block(t) * 2


net = Net()
clamp = net.block[1]
"""
RUN = "net(x).sum().backward()\n"


def after(line: str) -> str:
    return HEAD + RUN + line + "\n"


def before(line: str) -> str:
    return HEAD + line + "\n" + RUN + "print(seen)\n"


SEEN = {
    "printed": after("print(net)"),
    "printed in a list": after("print([net, 1])"),
    "a part printed": after("for child in net.block: print(child)"),
    "in a text": after("print(f'{net.block}')"),
    "formatted": after("print('{}'.format(net))"),
    "formatted by percent": after("print('%s' % net)"),
    "its text": after("size = len(repr(clamp))"),
    "its text asked for": after("size = len(clamp.extra_repr())"),
    "its text among others": after("print(', '.join(map(str, net.modules())))"),
    "asked by a hook whether it wrote": before("clamp.register_forward_hook(lambda m, i, o: seen.append(i[0] is o))"),
    "its input kept by a hook": before("clamp.register_forward_hook(lambda m, i, o: seen.append(i[0].sum().item()))"),
    "its input kept by a function": before(
        "def look(module, given, made):\n    seen.append(given[0].sum().item())\n\n\nclamp.register_forward_hook(look)"
    ),
    "kept by a hook on all modules": before(
        "nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(i[0].sum().item()))"
    ),
}  # fmt: skip
UNSEEN = {
    "its class printed": after("print(type(clamp).__name__)"),
    "another one printed": after("print(nn.ReLU(inplace=True), net.block[0])"),
    "numbers printed": after("print(sum(p.numel() for p in net.parameters()))"),
    "its output kept by a hook": before("clamp.register_forward_hook(lambda m, i, o: seen.append(o.sum().item()))"),
    "counted by a hook": before("clamp.register_forward_hook(lambda m, i, o: seen.append(1))"),
    "the input of the whole kept": before("net.register_forward_hook(lambda m, i, o: seen.append(i[0].sum().item()))"),
}  # fmt: skip


def plan_of(text: str) -> FixPlan:
    findings = check(Source("program.py", text), Settings()).findings
    return next(plan for finding in findings for plan in finding.fixes if plan.kind == "drop-inplace")


def judged(programs: dict[str, str]) -> dict[str, list[str]]:
    asked = []
    for text in programs.values():
        source = Source("program.py", text)
        asked.append((text, applied(source, edits(plan_of(text), source) or ()), True))
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=asked)
    return dict(zip(programs, answers))


@pytest.mark.parametrize("name", SEEN)
def test_unsafe_where_it_is_seen(name: str) -> None:
    assert plan_of(SEEN[name]).applicability is Applicability.UNSAFE


def test_unsafe_where_it_is_logged() -> None:
    assert plan_of(after("logging.getLogger().info(net)")).applicability is Applicability.UNSAFE


@pytest.mark.parametrize("name", UNSEEN)
def test_safe_where_it_is_not(name: str) -> None:
    assert plan_of(UNSEEN[name]).applicability is Applicability.SAFE


def test_torch_shows_the_difference() -> None:
    wrong = judged(SEEN)
    assert [name for name, found in wrong.items() if not found] == []
    right = judged(UNSEEN)
    assert {name: found for name, found in right.items() if found} == {}
