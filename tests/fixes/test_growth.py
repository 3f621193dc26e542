"""The difference of two texts, whatever they have in common, is found in time that grows with their length."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.fixes import api, edit
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source
from tests.counting import LINEAR, growth

TEXTS: dict[str, Callable[[int], tuple[str, str]]] = {
    "equal lines": lambda count: ("y.add_(1)\n" * count, "y = y + 1\n" * count),
    "every other line": lambda count: (
        "".join(f"x{at}\ny.add_(1)\n" for at in range(count)),
        "".join(f"x{at}\ny = y + 1\n" for at in range(count)),
    ),
    "few kinds of lines": lambda count: ("a\nb\n" * count, "b\na\nc\n" * count),
    "moved": lambda count: (
        "".join(f"x{at}\n" for at in range(count)),
        "".join(f"x{at}\n" for at in reversed(range(count))),
    ),
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS.keys())
def test_differences(texts: Callable[[int], tuple[str, str]]) -> None:
    def compared(count: int) -> Callable[[], object]:
        before, after = texts(count)
        index = LineIndex(before)
        return lambda: edit.changes(index, 0, len(before), after)

    assert growth(compared, 400) < LINEAR


@pytest.mark.parametrize("compared", [0, 6, 40_000])
def test_they_lead_from_one_text_to_the_other(monkeypatch: pytest.MonkeyPatch, compared: int) -> None:
    monkeypatch.setattr(edit, "MOST_COMPARED", compared)
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    for case in range(200):
        ends = ("\n", "\r\n")
        lines = [
            chance.choice("abcdefgh") * chance.randrange(1, 4) + chance.choice(ends)
            for _ in range(chance.randrange(30))
        ]
        other = [*lines]
        for _ in range(chance.randrange(6)):
            at = chance.randrange(len(other) + 1)
            other[at : at + chance.randrange(2)] = chance.sample(lines, min(len(lines), chance.randrange(3)))
        before, after = "".join(lines), "".join(other)
        made = edit.changes(LineIndex(before), 0, len(before), after)
        assert edit.applied(Source("a.py", before), made) == after, f"seed {seed}, case {case}"


def test_a_very_long_line_is_not_written_anew_for_each_of_its_fixes() -> None:
    def made(count: int) -> list[bool]:
        mistakes = "; ".join(f"y{n} = x.exp(); y{n} += 1; y{n}.sum().backward()" for n in range(count))
        source = Source("a.py", f"import torch\nx = torch.rand(3, requires_grad=True)\n{mistakes}\n")
        plans = [plan for finding in check(source, Settings()).findings for plan in finding.fixes]
        return [api.edits(plan, source) is not None for plan in plans]

    assert any(made(3))
    assert made(200)
    assert not any(made(200))
