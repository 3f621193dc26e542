"""A graph that the program looks for, hooks into or differentiates is not taken away unasked; torch shows why."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.oracle import shared_pool

HEAD = """import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(3, 3)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept, total = [], 0
"""
TRAINED = """for step in range(3):
    out = net(x).relu()
    {store}
    opt.zero_grad()
    {backward}
    opt.step()
{after}
"""


def trained(store: str, backward: str = "out.sum().backward()", after: str = "print(len(kept))") -> str:
    return HEAD + TRAINED.format(store=store, backward=backward, after=after)


EVALUATED = """net.eval()
for step in range(2):
    out = net(x)
    {use}
"""
ENCODER = """layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
encoder = nn.TransformerEncoder(layer, 1{options})
encoder.eval()
mask = torch.tensor([[False, False, True], [False, False, True]])
for step in range(2):
    out = encoder(torch.ones(2, 3, 4){given})
    print(round(out.abs().sum().item(), 3))
"""
CARRIED = """q = torch.eye(3).requires_grad_()
states = {{"old": [], "new": None}}
for step in range(2):
    {body}
print(q.sum())
"""
CLASS = """class Trainer:
    def __init__(self):
        self.losses = []

    def step(self):
        loss = net(x).pow(2).mean()
        self.losses.append(loss)
        opt.zero_grad()
        self.end({loss})
        opt.step()

    def end(self, loss):
        {end}


trainer = Trainer()
for step in range(3):
    trainer.step()
"""

NEEDED = {
    "a gradient that is kept": trained("out.retain_grad(); kept.append(out)", after="print([h.grad.sum() for h in kept])"),
    "a gradient that is kept later": trained("kept.append(out); out.retain_grad()", after="print(kept[0].grad.sum())"),
    "a hook": trained("kept.append(out); kept[-1].register_hook(print)"),
    "a backward through the last one": trained("kept.append(out)", "kept[-1].sum().backward()"),
    "a loss made of the last one": trained("kept.append(out); loss = kept[-1].mean()", "loss.backward()"),
    "a loss made by steps": trained("kept.append(out); last = kept[-1]; loss = last.mean() * 2", "loss.backward()"),
    "a loss put away once more": trained("parts = []; kept.append(out); parts.append(kept[-1].mean())", "sum(parts).backward()"),
    "a loss of the last ones": trained("table = {}; kept.append(out); loss = sum(h.sum() for h in kept[-1:])", "loss.backward()"),
    "a question": trained("total = total + out.sum()", after="if total.requires_grad: print(1)"),
    "a method of the class": HEAD + CLASS.format(loss="None", end="self.losses[-1].backward()"),
    "a hook under evaluation": HEAD + EVALUATED.format(use="out.register_hook(print)"),
    "a kept gradient under evaluation": HEAD + EVALUATED.format(use="out.retain_grad()"),
    "the name of a node": HEAD + EVALUATED.format(use="print(out.grad_fn.name())"),
    "a part that the next pass differentiates": HEAD
    + CARRIED.format(body="h = q\n    q = q ** 2\n    h.sum().backward()\n    both = [q]\n    both[0] *= both[0].clone()"),
    "a state that the next pass differentiates": trained(
        "kept.append(out * net.weight.sum())", "(kept[-2].sum() if step else out.sum()).backward(retain_graph=True)"
    ),
    "places that are padded": HEAD + ENCODER.format(options="", given=", src_key_padding_mask=mask"),
}  # fmt: skip
QUIET = {
    "numbers read in between": trained("kept.append(out); print(len(kept), kept[-1].sum().item())"),
    "a mean at the end": trained("kept.append(out)", after="print(torch.stack(kept).mean())"),
    "a sum": trained("total = total + out.sum()", after="print(total / 3)"),
    "another list": trained("kept.append(out); late = [out]", "late[-1].sum().backward()"),
    "a method that reads": HEAD + CLASS.format(loss="loss", end="loss.backward(); self.losses[-1].item()"),
    "evaluation": HEAD + EVALUATED.format(use="print(out.sum().item())"),
    "an encoder without padding": HEAD + ENCODER.format(options="", given=""),
    "padding that stays": HEAD
    + ENCODER.format(options=", enable_nested_tensor=False", given=", src_key_padding_mask=mask"),
}


def plans(text: str) -> list[FixPlan]:
    found = check(Source("program.py", text), Settings()).findings
    return [
        plan for finding in found if finding.code in ("GG201", "GG202", "GG204") for plan in finding.fixes
    ]


def made(text: str, plan: FixPlan) -> str:
    source = Source("program.py", text)
    return applied(source, edits(plan, source) or ())


def judged(programs: dict[str, str], plan_of: dict[str, FixPlan]) -> dict[str, list[str]]:
    asked = [(text, made(text, plan_of[name]), True) for name, text in programs.items()]
    answers = shared_pool().call("tests.fixes.judging:verdicts", timeout=300, programs=asked)
    return dict(zip(programs, answers))


@pytest.mark.parametrize("name", NEEDED)
def test_unsafe_where_it_is_needed(name: str) -> None:
    found = plans(NEEDED[name])
    assert found
    assert {plan.applicability for plan in found} == {Applicability.UNSAFE}


@pytest.mark.parametrize("name", QUIET)
def test_safe_where_nobody_asks(name: str) -> None:
    assert plans(QUIET[name])[0].applicability is Applicability.SAFE


def test_torch_shows_the_difference() -> None:
    wrong = judged(NEEDED, {name: plans(text)[0] for name, text in NEEDED.items()})
    assert [name for name, found in wrong.items() if not found] == []
    right = judged(QUIET, {name: plans(text)[0] for name, text in QUIET.items()})
    assert {name: found for name, found in right.items() if found} == {}
