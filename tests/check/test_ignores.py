"""Ignore comments silence what they name, where they stand, and are reported when idle."""

from __future__ import annotations

import pytest

from gradguard.check import ignores
from gradguard.check.api import run
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.findings import Finding, Limit, Span
from gradguard.source.text import Source
from tests.check.rules import RULES, engine, finding, refused, rules


def left(text: str, *findings: Finding, settings: Settings | None = None) -> list[tuple[int, str]]:
    source = Source("train.py", "import torch\n" + text)
    report = run(source, settings or Settings(), EMPTY, engine(*findings), rules)
    assert not report.crash
    return [(each.span.line, each.code) for each in report.findings]


def test_a_file_without_the_mark_loads_no_rules() -> None:
    assert not ignores.read(Source("a.py", "import torch\nx = 1  # ignore\n"), refused).comments


@pytest.mark.parametrize(
    "comment",
    [
        "# gradguard: ignore",
        "#gradguard:ignore",
        "# gradguard: ignore[GG101]",
        "# gradguard: ignore[ gg101 ] because",
        "# gradguard: ignore[inplace-on-saved-tensor]",
        "# gradguard: ignore[item-in-loop, GG101]",
        "# gradguard: ignore[GG1]",
        "# noqa  # gradguard: ignore[GG101]",
    ],
)
def test_comments_that_silence(comment: str) -> None:
    assert (2, "GG101") not in left(f"y.add_(1)  {comment}\n", finding(2))


@pytest.mark.parametrize(
    "text",
    [
        "y.add_(1)  # gradguard: ignore[GG102]\n",
        "y.add_(1)  # gradguard: ignore[]\n",
        "y.add_(1)  # gradguard: ignorant\n",
        "y.add_('# gradguard: ignore')\n",
        "y.add_(1)\n# gradguard: ignore\n",
    ],
)
def test_what_does_not_silence(text: str) -> None:
    assert (2, "GG101") in left(text, finding(2))


@pytest.mark.parametrize("line", [2, 3, 4])
def test_any_line_of_the_statement(line: int) -> None:
    rows = ["y.add_(", "    1,", ")"]
    rows[line - 2] += "  # gradguard: ignore[GG101]"
    assert left("\n".join(rows) + "\n", finding(2)) == []
    assert left("\n".join(rows) + "\n", finding(3)) == []


def test_the_head_of_a_block_does_not_speak_for_its_body() -> None:
    text = "for i in x:  # gradguard: ignore[GG101]\n    y.add_(1)\n"
    assert left(text, finding(3)) == [(2, "GG901"), (3, "GG101")]
    assert left(text, finding(2)) == []


def test_a_file_is_silenced_by_rule_or_whole() -> None:
    assert left("x = 1\ny.add_(1)\n# gradguard: ignore-file[GG101]\n", finding(3)) == []
    assert left("# gradguard: ignore-file\ny.add_(1)\n", finding(3), finding(3, "GG301")) == []


def test_a_comment_that_silences_nothing_is_reported_with_its_place() -> None:
    source = Source("train.py", "import torch\nx = 1  # gradguard: ignore[GG101, GG301] why\n")
    (found,) = run(source, Settings(), EMPTY, engine(finding(2, "GG301")), rules).findings
    assert found.code == "GG901"
    assert source.slice(found.span) == "GG101"
    assert found.fixes[0].data == (("selector", "GG101"),)
    assert source.slice(found.fixes[0].span) == "# gradguard: ignore[GG101, GG301]"


def test_a_wholly_idle_comment_is_one_place_for_each_reason() -> None:
    assert left("x = 1  # gradguard: ignore\n") == [(2, "GG901")]
    assert left("x = 1  # gradguard: ignore[GG101]\n") == [(2, "GG901")]


def test_an_unknown_rule_in_a_comment_is_named() -> None:
    source = Source("train.py", "import torch\nx = 1  # gradguard: ignore[GG101, item-in-lop]\n")
    messages = [each.message for each in run(source, Settings(), EMPTY, engine(finding(2)), rules).findings]
    assert messages == ['unknown rule "item-in-lop"; did you mean "item-in-loop"?']


def test_an_ignore_of_a_rule_that_did_not_run_is_not_idle() -> None:
    text = "x = 1  # gradguard: ignore[GG301]\n"
    assert left(text, settings=Settings(ignore=("GG301",))) == []
    assert left("x = 1  # gradguard: ignore\n", settings=Settings(select=("GG101", "GG901"))) == []
    assert left(text, settings=Settings(ignore=("GG901",))) == []


def test_nothing_is_called_idle_where_the_analysis_stopped_early() -> None:
    source = Source("train.py", "import torch\nx = 1  # gradguard: ignore\n")
    stopped = engine(limits=(Limit("train.py", Span(1, 1, 1, 1), "too long"),))
    assert run(source, Settings(), EMPTY, stopped, rules).findings == ()


def test_comments_count_in_a_file_that_does_not_parse() -> None:
    source = Source(
        "train.py",
        "import torch\ny.add_(1)  # gradguard: ignore[GG101]\nx = (\nz.add_(1)  # gradguard: ignore\n",
    )
    read = ignores.read(source, rules)
    assert [comment.span.line for comment in read.comments] == [2, 4]
    assert read.silences(finding(2))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_parser_does(end: str) -> None:
    text = end.join(["import torch", 's = "\u2028"', "y.add_(1)  # gradguard: ignore", ""])
    read = ignores.read(Source("train.py", text), rules)
    assert [comment.span.line for comment in read.comments] == [3]


def test_columns_count_code_points() -> None:
    source = Source("train.py", 'import torch\ns = "äöü🙂"  # gradguard: ignore[GG101]\n')
    (comment,) = ignores.read(source, rules).comments
    assert source.slice(comment.span) == "# gradguard: ignore[GG101]"
    assert source.slice(comment.selectors[0].span) == "GG101"


def test_a_comment_in_a_function_is_not_removed_as_safe() -> None:
    text = (
        "import torch\nx = 1  # gradguard: ignore[GG101]\ndef f():\n    x = 1  # gradguard: ignore[GG101]\n"
    )
    report = run(Source("train.py", text), Settings(), EMPTY, engine(), rules)
    assert [each.fixes[0].applicability.value for each in report.findings] == ["safe", "unsafe"]


def test_selectors_know_their_rules() -> None:
    assert RULES.resolve("GG1") == {"GG101", "GG102", "GG120"}
