"""How often the body of a loop runs that stands in other loops."""

from __future__ import annotations

import pytest

from gradguard.engine.domain.events import SecondBackward
from gradguard.engine.models.library import REGISTRY
from tests.engine.analysing import analysed

HEAD = "import torch, data\nw = torch.ones(3, requires_grad=True)\nx = torch.ones(3)\n"


def passes(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How often a program calls `torch.erf` on its one path."""
    called = []

    def counted(run, frame, call, node):  # type: ignore[no-untyped-def]
        called.append(node)
        return run.fresh()

    monkeypatch.setitem(REGISTRY.torch, "torch.erf", counted)
    analysed(HEAD + text)
    return len(called)


@pytest.mark.parametrize(("depth", "expected"), [(1, 2), (2, 3), (3, 4), (4, 5)])
def test_a_loop_in_others_shows_once_what_it_hands_on(
    monkeypatch: pytest.MonkeyPatch, depth: int, expected: int
) -> None:
    lines = [f"{'    ' * level}for i{level} in data.load({level}):" for level in range(depth)]
    assert passes(monkeypatch, "\n".join([*lines, "    " * depth + "torch.erf(x)"])) == expected


def test_while_loops_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "while data.more():\n    while data.left():\n        torch.erf(x)\n"
    assert passes(monkeypatch, text) == 3


def test_a_pass_that_goes_another_way_is_followed_by_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "for epoch in range(data.epochs):\n    for b in data.load(epoch):\n        if epoch > 0:\n            w\n"
        "        torch.erf(x)\n"
    )
    assert passes(monkeypatch, text) == 4


def test_short_loops_of_known_length_run_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert passes(monkeypatch, "for b in data.load():\n    for i in range(3):\n        torch.erf(x)\n") == 6


def test_two_calls_of_one_loop_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "def part(v):\n    for b in data.load():\n        torch.erf(v)\n"
        "for epoch in data.epochs():\n    part(x)\n    part(w)\n"
    )
    assert passes(monkeypatch, text) == 6


def test_a_mistake_of_the_second_epoch_alone_is_found() -> None:
    text = HEAD + (
        "for epoch in range(data.epochs):\n    h = torch.zeros(3)\n    for b in data.load():\n"
        "        h = torch.tanh(x * w + h)\n        h.sum().backward()\n        if epoch == 0:\n            h = h.detach()\n"
    )
    assert any(isinstance(event, SecondBackward) for event in analysed(text).events)
