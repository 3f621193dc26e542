"""`torch.inference_mode()` is offered where no tensor gets out, and where one does torch refuses it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.findings import Applicability, FixPlan
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.oracle import Program, judge_many

HEAD = """import torch
from torch import nn

net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
batches = [torch.rand(2, 3) for _ in range(2)]
box = nn.Identity()
total, kept, table = torch.zeros(()), [], {}
net.eval()
"""
ESCAPES = {
    "put into a list": """for batch in batches:
    kept.append(net(batch).detach())
for one in kept:
    head(one).sum().backward()
""",
    "the last one": """for batch in batches:
    out = net(batch)
head(out.detach()).sum().backward()
""",
    "put into a dictionary": """for index, batch in enumerate(batches):
    table[index] = net(batch).detach()
head(table[0]).sum().backward()
""",
    "put on an object": """for batch in batches:
    box.last = net(batch).detach()
head(box.last).sum().backward()
""",
    "written behind": """for batch in batches:
    total = total + net(batch).mean()
total += 1
print(total)
""",
    "read in the next epoch": """out = torch.rand(2, 3)
for epoch in range(2):
    head(out.detach()).sum().backward()
    for batch in batches:
        out = net(batch)
""",
    "through another name": """for batch in batches:
    out = net(batch)
    same = [out]
head(same[0].detach()).sum().backward()
""",
    "what a function returns": """def evaluate(model):
    best = torch.zeros(2, 3)
    for batch in batches:
        best = torch.maximum(best, model(batch).detach())
    return best


head(evaluate(net)).sum().backward()
""",
    "what a module remembers": """class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x):
        y = self.inner(x)
        self.last = y.detach()
        return y


model = Remembers()
model.eval()
for batch in batches:
    print(model(batch).sum().item() > 99)
head(model.last).sum().backward()
""",
    "what a function remembers": """def mask():
    if "mask" not in table:
        table["mask"] = torch.ones(3)
    return table["mask"]


for batch in batches:
    print((net(batch) * mask()).sum().item() > 99)
(head.weight * mask()).sum().backward()
""",
    "what a cached function gives again": """from functools import lru_cache


@lru_cache(maxsize=None)
def mask(size):
    return torch.ones(size)


for batch in batches:
    print((net(batch) * mask(3)).sum().item() > 99)
(head.weight * mask(3)).sum().backward()
""",
    "what a function behind a function collects": """def inner(out):
    kept.append(out.detach())


def collect(out):
    inner(out)


for batch in batches:
    collect(net(batch))
head(kept[0]).sum().backward()
""",
    "what an object keeps": """class Mask:
    made = None

    def get(self):
        if self.made is None:
            self.made = torch.ones(3)
        return self.made


mask = Mask()
for batch in batches:
    print((net(batch) * mask.get()).sum().item() > 99)
(head.weight * mask.get()).sum().backward()
""",
    "what a hook keeps": """net.register_forward_hook(lambda module, given, made: kept.append(made.detach()))
for batch in batches:
    print(net(batch).sum().item() > 99)
head(kept[0]).sum().backward()
""",
    "what a data set keeps": """class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        if index not in table:
            table[index] = torch.ones(3)
        return table[index]


rows = Rows()
for index in range(2):
    print(net(rows[index]).sum().item() > 99)
(head.weight * rows[0]).sum().backward()
""",
    "a global of a function": """last = None


def show(out):
    global last
    last = out.detach()


for batch in batches:
    show(net(batch))
head(last).sum().backward()
""",
    "read by a function that is called later": """def train():
    head(out.detach()).sum().backward()


for batch in batches:
    out = net(batch)
train()
""",
}
STAYS = {
    "what a function puts into its own list": """def means(out):
    rows = []
    for row in out:
        rows.append(row.mean())
    return torch.stack(rows).sum().item()


for batch in batches:
    print(means(net(batch)) > 99)
""",
    "numbers that a function collects": """def count(out):
    kept.append(out.sum().item())
    table["last"] = out.tolist()


for batch in batches:
    count(net(batch))
print(len(kept), len(table))
""",
    "what another function collects": """def collect(out):
    kept.append(out.detach())


collect(head(batches[0]))
for batch in batches:
    print(net(batch).sum().item() > 99)
""",
    "numbers": """hits = 0
for batch in batches:
    hits += (net(batch) > 0).sum().item()
print(hits / 2)
""",
    "bound anew by the loop that trains": """for batch in batches:
    out = net(batch)
    print(out.mean().item() > 99)
for batch in batches:
    out = head(batch)
    out.sum().backward()
""",
    "a name of its own in a function": """def train():
    out = head(batches[0])
    out.sum().backward()


for batch in batches:
    out = net(batch)
    print(float(out.sum()) > 99)
train()
""",
    "read before": """out = head(batches[0])
out.sum().backward()
for batch in batches:
    out = net(batch)
    print(out.shape)
""",
    "numbers in containers": """for index, batch in enumerate(batches):
    kept.append(net(batch).tolist())
    table[index] = len(kept)
print(len(kept), table)
""",
}


def plans(text: str) -> list[FixPlan]:
    found = check(Source("program.py", text), Settings()).findings
    return [plan for finding in found for plan in finding.fixes if finding.code == "GG204"]


@pytest.mark.parametrize("name", ESCAPES)
def test_not_where_a_tensor_gets_out(name: str) -> None:
    kinds = {plan.kind for plan in plans(HEAD + ESCAPES[name])}
    assert kinds
    assert "inference-mode" not in kinds


def made(text: str, plan: FixPlan) -> str:
    source = Source("program.py", text)
    return applied(source, edits(replace(plan, kind="inference-mode"), source) or ())


def test_torch_refuses_it_there() -> None:
    programs = {name: made(HEAD + body, plans(HEAD + body)[0]) for name, body in ESCAPES.items()}
    verdicts = dict(zip(programs, judge_many([Program(code) for code in programs.values()])))
    assert {name for name, verdict in verdicts.items() if "nference tensor" not in verdict.error} == set()


def test_offered_second_where_all_stays_inside() -> None:
    found = {name: plans(HEAD + body) for name, body in STAYS.items()}
    assert {name: [plan.kind for plan in each] for name, each in found.items()} == {
        name: ["no-grad", "inference-mode"] for name in STAYS
    }
    assert {plan.applicability for each in found.values() for plan in each} == {Applicability.SAFE}
    programs = [Program(made(HEAD + STAYS[name], found[name][1])) for name in STAYS]
    assert [verdict.outcome for verdict in judge_many(programs)] == ["ok"] * len(programs)
