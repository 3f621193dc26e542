"""Where the benchmark types in a script, and what it makes of the times."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import corpus, keystrokes
from benchmarks.client import strokes
from benchmarks.keystrokes import IN_FUNCTION, TOP_LEVEL, Key, Measured, chosen, figures, spots

SCRIPT = '''\
"""Train."""
import torch

class Net(torch.nn.Module):
    width = 3

    def forward(self, x):
        h = x * 2  # a comment
        y = x.exp()
        return y

def train(model):
    for step in range(3):
        loss = model(3); print(1)
        try:
            loss.backward()
        except RuntimeError:
            total = (
                1
            )
    if True: model = 3

if __name__ == "__main__":
    net = Net()
    with torch.no_grad():
        train(net)
    word = "é"
'''


def test_spots_are_ends_of_statements_with_a_line_of_their_own() -> None:
    lines = SCRIPT.split("\n")
    found = [(lines[spot.line].strip(), spot.where, spot.name) for spot in spots(SCRIPT)]
    assert found == [
        ("y = x.exp()", IN_FUNCTION, "y"),
        ("loss.backward()", IN_FUNCTION, "loss"),
        ("net = Net()", TOP_LEVEL, "net"),
        ("train(net)", TOP_LEVEL, "net"),
    ]
    for spot in spots(SCRIPT):
        assert lines[spot.line][: spot.column] == lines[spot.line]
        assert spot.indent == " " * len(spot.indent)
    assert [spot.is_value for spot in spots(SCRIPT)] == [True, False, True, False]


def test_functions_and_top_level_take_turns_and_are_spread() -> None:
    text = "def f(x):\n" + "    x = x + 1\n" * 50 + "y = 1\n" * 50
    every = spots(text)
    assert [spot.where for spot in chosen(every, 4, 0)] == [IN_FUNCTION, TOP_LEVEL] * 2
    assert [spot.where for spot in chosen(every, 4, 1)] == [TOP_LEVEL, IN_FUNCTION] * 2
    assert len(chosen(every, 5, 0)) == len(chosen(every, 5, 1)) == 5
    lines = {spot.line for number in range(20) for spot in chosen(every, 4, number)}
    assert len(lines) > 40
    assert max(lines) - min(lines) > 90


def test_a_script_without_functions_is_typed_in_at_the_top_level() -> None:
    every = spots("y = 1\n" * 9)
    assert [spot.where for spot in chosen(every, 4, 7)] == [TOP_LEVEL] * 4
    assert chosen([], 4, 0) == []


def test_what_is_typed_closes_its_brackets_once() -> None:
    typed = [inserted for inserted, _ in strokes("\nprint(x)", "    ")]
    assert typed == ["\n    ", "p", "r", "i", "n", "t", "()", "x", ""]


def test_scripts_train_and_have_the_length_of_one() -> None:
    def script(lines: int, call: str = "loss.backward()") -> bool:
        return corpus.is_script((call + "\n" * lines).encode())

    assert [script(lines) for lines in (99, 100, 1200, 1201)] == [False, True, True, False]
    assert not script(300, "loss.item()")


def key(wall: float, first: bool = False, where: str = TOP_LEVEL) -> Key:
    return Key("train.py", where, "a call", first, wall, wall / 2)


def test_the_first_edit_counts_and_is_told_apart_too() -> None:
    measured = Measured(1, 1000, [12.0], [300.0], [key(100.0, True), key(4.0), key(6.0)], [1.0, 2.0])
    told = figures(measured)
    rows = {row["what"]: row for row in told["rows"]}
    assert rows["keystroke"]["max"] == 100
    assert not rows["keystroke"]["met"]
    assert rows["first edit after opening"]["median"] == 100
    assert rows["hover while a keystroke is analysed"]["met"]
    assert told["parse_line"] == pytest.approx(12)
    # This machine needs 12 µs for a line, a quick one 6.
    assert rows["keystroke, cpu, where a line is parsed in 6 µs"]["max"] == pytest.approx(25)


def test_nothing_is_measured_when_the_time_is_up() -> None:
    told = figures(keystrokes.measure([Path("nowhere.py")], 4, lambda: 0.0))
    assert told["rows"] == []


def test_a_script_is_typed_in_and_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, "utf-8")
    measured = keystrokes.measure([path], 4, lambda: 1.0)
    assert (measured.scripts, measured.lines, len(measured.hovers)) == (1, SCRIPT.count("\n"), 4)
    assert [each.first for each in measured.keys] == [True, *[False] * (len(measured.keys) - 1)]
    assert {each.where for each in measured.keys} == {IN_FUNCTION, TOP_LEVEL}
    assert {each.edit for each in measured.keys} >= {"a comment", "a call"}
