"""What a terminal shows: as wide as it is, readable on black, on white and without colour, in both languages."""

from __future__ import annotations

import argparse
import itertools
import re
import string
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gradguard import main
from gradguard.cli.arguments import parser
from gradguard.cli.formats import text
from gradguard.cli.korean import HELP
from gradguard.cli.language import worded
from gradguard.cli.result import Outcome
from gradguard.findings import Related, Span
from gradguard.ide.wording import translated
from gradguard.report.findings import CUT
from gradguard.report.pieces import CODE, MARKDOWN, STYLES, width_of
from gradguard.report.words import COUNTED, TEXTS, Words, language
from tests.cli.outcomes import OUTCOME, SAVED, line_of

LINE = "".join(f"value_{index:02} = torch.sigmoid(x); " for index in range(40))


def shown(outcome: Outcome, width: int | None, words: Words | None = None) -> list[str]:
    def line(path: str, number: int) -> str:
        return LINE if path == "long.py" else line_of(path, number)

    lines = text.render(outcome, line, words=words or Words(), width=width)
    return ["".join(piece for piece, _ in each) for each in lines]


def at(column: int, message: str = "saved here by `sigmoid`: backward needs its result") -> Outcome:
    span = Span(1, column, 1, column + 8)
    return Outcome((replace(SAVED, path="long.py", span=span, related=(Related("long.py", span, message),)),))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("wanted", ["en", "ko"])
def test_nothing_is_wider_than_the_terminal_and_no_word_is_broken(width: int, wanted: str) -> None:
    words = worded(wanted)
    for outcome in (OUTCOME, *(at(column) for column in (1, 29, 400, len(LINE) - 8))):
        lines = shown(outcome, width, words)
        assert max(map(width_of, lines)) <= width
        known = set(" ".join(shown(outcome, None, words)).split())
        told = [line for line in lines if not re.match(r"\s+\d* ?\|", line)]
        assert {word for line in told for word in line.split()} <= known


@pytest.mark.parametrize("column", [1, 29, 400, len(LINE) - 30])
def test_of_a_long_line_the_part_around_the_mark_is_shown(column: int) -> None:
    lines = shown(at(column), 80)
    (source, under) = next((a, b) for a, b in itertools.pairwise(lines) if a.startswith("  1 | "))
    start, end = under.index("^"), under.rindex("^") + 1
    assert source[start:end] == LINE[column - 1 : column + 7]
    assert source.startswith("  1 | " + CUT) is (column > 28)
    assert source.endswith(CUT) is (column < 1000)


def test_a_place_in_another_file_stands_under_its_line() -> None:
    lines = shown(OUTCOME, None)
    start = lines.index("    --> src/model.py:1")
    assert lines[start + 1 : start + 3] == ["  1 | class Net:", "    | ---------- called from here"]


def luminance(colour: int) -> float:
    if colour >= 232:
        parts = [8 + 10 * (colour - 232)] * 3
    else:
        steps = (0, 95, 135, 175, 215, 255)
        parts = [steps[(colour - 16) // 36], steps[(colour - 16) // 6 % 6], steps[(colour - 16) % 6]]
    red, green, blue = (
        each / 255 / 12.92 if each <= 10 else ((each / 255 + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


ALL = {**STYLES, **CODE, **MARKDOWN}


@pytest.mark.parametrize("style", sorted(ALL))
def test_every_colour_is_read_on_black_and_on_white(style: str) -> None:
    found = re.fullmatch(r"none|(?:bold)? ?(?:color\((\d+)\))?", ALL[style])
    assert found is not None
    if found[1]:
        light = luminance(int(found[1]))
        assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) >= 4.3


def test_without_colour_nothing_is_lost() -> None:
    assert any(": error GG101 " in line for line in shown(OUTCOME, None))
    assert any(set(line.split("|")[-1].strip()) == {"^"} for line in shown(OUTCOME, None))


def actions(of: argparse.ArgumentParser) -> Iterator[str]:
    yield from filter(
        None,
        (of.description, of.epilog, *(group.title for group in of._action_groups if group._group_actions)),
    )
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (str(each.help) for each in action._choices_actions)
            for below in action.choices.values():
                yield from actions(below)
        elif action.help:
            yield action.help


def test_all_of_the_help_is_there_in_korean_and_nothing_else() -> None:
    assert set(actions(parser())) == HELP.keys()
    assert set(actions(parser("ko"))) == set(HELP.values())


def test_texts_have_the_same_fields_in_both_languages() -> None:
    def fields(template: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(template) if name}

    for key, (english, korean) in TEXTS.items():
        assert fields(english) == fields(korean), key
    assert all("{count}" in korean or korean == "개" for _, _, korean in COUNTED.values())


def test_the_language_is_that_of_the_option_else_of_the_system() -> None:
    assert language(["check", "--lang", "ko"], {"LANG": "en_US.UTF-8"}) == "ko"
    assert language(["check", "--lang=en"], {"LANG": "ko_KR.UTF-8"}) == "en"
    assert language(["check"], {"LANG": "ko_KR.UTF-8"}) == "ko"
    assert language(["check"], {"LC_ALL": "C", "LANG": "ko_KR.UTF-8"}) == "en"
    assert language(["check", "--", "--lang", "ko"], {}) == "en"


def test_a_report_in_korean() -> None:
    lines = shown(OUTCOME, None, worded("ko"))
    assert any(line.startswith("src/train, v2.py:4:2: 오류 GG101 ") for line in lines)
    assert lines[-3].startswith("문제 3개(오류 1개, 경고 1개, 힌트 1개)")


def test_particles_follow_the_syllable_before_them() -> None:
    said = translated("saved here by `sigmoid`: backward needs its result", "ko")
    assert "결과가 필요합니다" in said
    assert "`sigmoid`이(가)" in said


@pytest.mark.parametrize("command", ["run", "verify"])
def test_help_needs_no_torch(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as left:
        main.main([command, "--help"])
    assert left.value.code == 0
    assert f"usage: gradguard {command}" in capsys.readouterr().out
    assert main.main([command, "train.py"]) == 2
    assert "has no torch" in capsys.readouterr().err
