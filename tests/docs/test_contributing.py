"""The examples of CONTRIBUTING.md do in the engine what the text says of them. That of a rule: `test_new_rule.py`."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import Frame, Value
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
TRAINED = """{engine}
import torch

def trainer(w):
    def step(engine, batch):
        y = torch.sigmoid(batch * w)
        y += 1
        y.sum().backward()
    return Engine(step)

trainer(torch.rand(3, requires_grad=True)).run([torch.rand(3)])
"""
IMPORTED = "from ignite.engine import Engine"
STANDS_IN = """class Engine:
    def __init__(self, process_function): self.step = process_function
    def run(self, data): [self.step(self, batch) for batch in data]
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


@pytest.mark.parametrize(
    ("number", "text", "as_torch", "line"),
    [
        (3, ANNOTATED, ANNOTATED, 4),
        (4, TRAINED.format(engine=IMPORTED), TRAINED.format(engine=STANDS_IN), 7),
    ],
    ids=["model", "framework"],
)
def test_a_model_lets_the_mistake_be_seen(
    number: int, text: str, as_torch: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge(as_torch, timeout=180).outcome == "raises"
    assert told(text) == []
    whole = Registry.of((library.REGISTRY, example(number)["MODELS"]))
    monkeypatch.setattr(library, "REGISTRY", whole)
    assert told(text) == [("GG101", line)]


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
