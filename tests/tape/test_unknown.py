"""Objects of unknown make: what their methods are called with tells what they can be."""

from __future__ import annotations

import textwrap

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source


def codes(text: str, *, possible: bool = False) -> list[str]:
    """What is found in a program."""
    source = Source("/w/main.py", textwrap.dedent(text))
    return [one.code for one in check(source, Settings(all=possible)).findings]


def test_an_object_with_a_method_that_tensors_have_too_is_no_tensor() -> None:
    text = """
    import torch

    def train(engine, model):
        engine.gather((model, model))
        x, y = engine.prepare(model)
        for step in range(3):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            x = x[torch.randperm(len(x))]
    """
    assert codes(text) == []


def test_a_method_called_as_tensors_have_it_tells_a_tensor() -> None:
    text = """
    import torch

    def pick(scores, index):
        found = scores.gather(1, index).exp()
        found += 1
        return found
    """
    assert codes(text, possible=True) == ["GG101"]


def test_any_method_named_backward_may_be_the_backward() -> None:
    text = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self):
            self.engine = None

        def fit(self, loader):
            model = nn.Linear(4, 1)
            losses = []
            for x in loader:
                losses.append(model(x).sum())
            for loss in losses:
                self.engine.backward(loss)
    """
    assert codes(text) == []
