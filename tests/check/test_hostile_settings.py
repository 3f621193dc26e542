"""Whatever stands in a pyproject.toml ends soon, with words for what is wrong."""

from __future__ import annotations

import pytest

from gradguard.check import pyproject
from gradguard.check.parsing import TOLD, parse
from tests.check.rules import rules
from tests.limited import printed

HEAD = "[tool.gradguard]\n"


def told(text: str) -> list[str]:
    parsed = pyproject.parse_text(HEAD + text, "p", rules=rules)
    assert parsed is not None
    return [str(each) for each in parsed.problems]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all = " + "[" * 5_000 + "]" * 5_000, "p: not valid TOML: Nested too deeply"),
        ("all = " + "{a=" * 5_000, "p: not valid TOML: Nested too deeply"),
        ("all = " + "1" * 5_000, "p: not valid TOML: A number or a date that Python does not take"),
        ("all = 0x" + "f" * 5_000, "p:2: [tool.gradguard] all: expected true or false, found a huge number"),
        ("all = 2020-99-99", "p:2: not valid TOML: "),
        ("a." * 64 + "b = 1", "p:2: not valid TOML: A key of more than 64 parts"),
        ('all = {"a" . ' + " b." * 64 + "c = 1}", "p:2: not valid TOML: A key of more than 64 parts"),
        ("k" * 5_000 + " = 1", "p:2: [tool.gradguard] " + "k" * 97 + "...: unknown key; "),
        ('select = ["' + "k" * 5_000 + '"]', 'p:2: [tool.gradguard] select: unknown rule "kkk'),
        ('torch-version = "2.6' + "a" * 5_000 + '!"', 'p:2: [tool.gradguard] torch-version: "2.6aaa'),
        ("exclude = [" + "[" * 20 + "1" + "]" * 21, "p:2: [tool.gradguard] exclude: expected a list of strings"),
    ],
)  # fmt: skip
def test_what_no_parser_should_be_given_is_a_problem_in_words(text: str, message: str) -> None:
    (problem,) = told(text)
    assert problem.startswith(message)
    assert len(problem) < 400


def test_a_key_of_many_parts_in_a_text_is_no_key() -> None:
    assert told('src = ["' + "a." * 60 + '"]\n# ' + "a." * 100) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("!", 'nothing follows its "!"'),
        ("a\\", "nothing follows the backslash at its end"),
        ("[z-a]", "in [z-a] the first comes after the last"),
        ("x" * 20_000, "it is longer than 10,000 characters"),
    ],
)
def test_what_is_no_pattern_is_named_with_its_key_and_the_others_are_taken(text: str, reason: str) -> None:
    quoted = text if len(text) <= 100 else text[:97] + "..."
    parsed = parse({"exclude": ["a", text, "b"]}, "here", rules=rules)
    assert dict(parsed.layer) == {"exclude": ("a", "b")}
    assert [str(each) for each in parsed.problems] == [
        f'here: exclude: "{quoted}" is no pattern as in .gitignore: {reason}'
    ]
    parsed = parse({"perFileIgnores": {"a": ["GG1"], text: ["GG1"]}}, "here", rules=rules, editor=True)
    assert dict(parsed.layer) == {"per_file_ignores": (("a", ("GG101", "GG102", "GG120")),)}
    assert [each.key for each in parsed.problems] == [f"perFileIgnores.{text}"]


def test_problems_without_number_are_counted() -> None:
    told = [str(each) for each in parse({f"k{n}": 1 for n in range(1_000)}, "here", rules=rules).problems]
    assert len(told) == TOLD + 1
    assert told[-1] == f"here: and {1_000 - TOLD} more problems"


def test_a_line_is_found_for_each_of_many_keys() -> None:
    lines = told("\n".join(f"k{n} = 1" for n in range(40)))
    assert [each.split(": ")[0] for each in lines] == [f"p:{n + 2}" for n in range(40)]


HOSTILE = """\
from gradguard.check.pyproject import parse_text

HEAD = "[tool.gradguard]\\n"
GLOBS = HEAD + "[tool.gradguard.per-file-ignores]\\n"
for text in (
    HEAD + "a=" + "[" * 300_000,
    HEAD + "a=" + "1" * 300_000,
    HEAD + "k" * 300_000 + "=1",
    "a." * 150_000 + "b=1\\n" + HEAD,
    "[" + "a." * 150_000 + "b]\\n" + HEAD,
    HEAD + "a={" + "a." * 150_000 + "b=1}",
    HEAD + "a={" + "'a' . " * 150_000 + "b=1}",
    HEAD + "a=" + '"' * 300_000,
    HEAD + 'a="' + '\\\\"' * 150_000,
    HEAD + "selct=1\\n[" + " " * 300_000 + "x]",
    HEAD + "".join(f"k{n}=1\\n" for n in range(8_000)),
    HEAD + "select=[" + ",".join(f'"Q{n}"' for n in range(8_000)) + "]",
    HEAD + 'torch-version="2.' + "1" * 300_000 + '!"',
    HEAD + 'torch-version="2.' + "a" * 60 + '!"',
    HEAD + 'exclude=["' + "*a" * 150_000 + '"]',
    GLOBS + "".join(f"'k{n}[z-a]'=['GG1']\\n" for n in range(4_000)),
):
    parsed = parse_text(text, "p")
    assert parsed is not None and parsed.problems, text[:60]
    assert all(len(str(each)) < 400 for each in parsed.problems)
print("done")
"""


def test_no_text_takes_long() -> None:
    assert printed(HOSTILE) == "done\n"
