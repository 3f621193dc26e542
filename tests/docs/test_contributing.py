"""The examples of CONTRIBUTING.md do in the engine what the text says of them. That of a rule: `test_new_rule.py`."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Frame, Value
from gradguard.engine.driver import entry
from gradguard.engine.models import library, tensor_methods
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run
from gradguard.findings import Certainty
from tests.docs.pages import ROOT, blocks
from tests.engine.analysing import analysed, findings
from tests.oracle import judge

ANNOTATED = """import torch
x = torch.rand(3, requires_grad=True)
y = torch.jit.annotate(torch.Tensor, x.exp())
y += 1
y.sum().backward()
"""
TRAINED = """{base}
import torch
from torch import nn

class Net(ComposerModel):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def forward(self, batch):
        return self.net(batch)

    def loss(self, outputs, batch):
        y = torch.sigmoid(self.net(batch))
        y += 1
        return y.sum()
"""
IMPORTED = "from composer.models import ComposerModel"
STANDS_IN = "from torch.nn import Module as ComposerModel"
RUNS = """
net, batch = Net(), torch.rand(2, 3)
net.loss(net(batch), batch).backward()
"""
RETAINED = """import torch
x = torch.rand(3, requires_grad=True)
x.retain_grad()
y = x.exp()
y.retain_grad()
y.sum().backward()
assert not x.retains_grad
assert y.retains_grad
"""


def example(number: int) -> dict[str, Any]:
    """What a block of the page defines."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(
        compile(dict(blocks("python"))[f"CONTRIBUTING.md-{number}"], "example.py", "exec", dont_inherit=True),
        names,
    )
    return names


def told(text: str) -> list[tuple[str, int]]:
    """Code and line of what is certain."""
    return [(each.code, each.span.line) for each in findings(text) if each.certainty is Certainty.CERTAIN]


def test_a_model_lets_the_mistake_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(ANNOTATED, timeout=180).outcome == "raises"
    assert told(ANNOTATED) == []
    whole = Registry.of((library.REGISTRY, example(3)["MODELS"]))
    monkeypatch.setattr(library, "REGISTRY", whole)
    assert told(ANNOTATED) == [("GG101", 4)]


def test_a_framework_lets_the_mistake_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(TRAINED.format(base=STANDS_IN) + RUNS, timeout=180).outcome == "raises"
    assert told(TRAINED.format(base=IMPORTED)) == []
    monkeypatch.setattr(entry, "SCHEDULES", (*entry.SCHEDULES, example(4)["MODEL"]))
    assert told(TRAINED.format(base=IMPORTED)) == [("GG101", 15)]


def test_an_observer_emits_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(RETAINED, timeout=180).outcome == "ok"
    names = example(5)
    retain = tensor_methods._METHODS["retain_grad"]

    def observed(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
        names["retained"](run, owner, call.place)
        return retain(run, frame, owner, call, node)

    monkeypatch.setitem(tensor_methods._METHODS, "retain_grad", observed)
    events = [each for each in analysed(RETAINED).events if isinstance(each, names["IdleRetain"])]
    assert [(each.place.line, each.certain, each.text) for each in events] == [(3, True, "x")]


def test_what_the_text_names_is_where_it_says() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`(\w+)` \(`(engine/[\w/]+\.py)`\)", text)
    assert {name for name, _ in named} == {"_derives", "PER_STEP", "finish"}
    for name, file in named:
        assert re.search(rf"^(def )?{name}\b", (ROOT / "server/gradguard" / file).read_text(), re.MULTILINE)
