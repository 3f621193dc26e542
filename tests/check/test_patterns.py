"""Patterns mean what pathspec says, and what git says where the two differ, and take no time worth speaking of."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from gradguard.check.patterns import _PIECE, LONGEST, MOST_SETS, Patterns
from tests.limited import printed

PIECES = (
    "a", "b", "*", "?", ".", "[ab]", "[a-c]", "[]a]", "[-a]", "[a-]", "[\\a]", "[b^!]", "\\*", "\\a", "\\[", "!", "#",
    "^", "$", "(", "+", "{", "|", " ", "é", "**",
)  # fmt: skip
NAMES = "aabbc.*!#^$(+{|\\[- é"


def patterns(rng: random.Random) -> list[str]:
    def segment() -> str:
        if rng.random() < 0.45:
            return rng.choice(["**", "**", "*", ""])
        return "".join(rng.choices(PIECES, k=rng.randint(1, 4)))

    def one() -> str:
        inside = "/".join(segment() for _ in range(rng.randint(1, 5)))
        return rng.choice(["", "", "!", "/"]) + inside + rng.choice(["", "", "/"])

    return [one() for _ in range(rng.randint(1, 4))]


def name(rng: random.Random) -> str:
    parts = ["".join(rng.choices(NAMES, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 5))]
    if parts[0] == ".":  # a relative path does not begin so, and pathspec cuts it off
        parts[0] = "a"
    return "/".join(parts) + rng.choice(["", "", "/"])


def asked(seed: int, count: int) -> Iterator[tuple[list[str], GitIgnoreSpec, random.Random]]:
    rng = random.Random(seed)
    for _ in range(count):
        texts = patterns(rng)
        try:
            yield texts, GitIgnoreSpec.from_lines(texts, backend="simple"), rng
        except (ValueError, re.error):
            assert Patterns(texts).refused


@pytest.mark.parametrize("seed", range(4))
def test_every_pattern_means_what_pathspec_makes_of_it(seed: int) -> None:
    for texts, spec, rng in asked(seed, 1_500):
        mine = Patterns(texts)
        for _ in range(6):
            asking = name(rng)
            assert mine.verdict(asking) == spec.check_file(asking).include, (texts, asking)


def test_patterns_that_match_are_told_apart() -> None:
    for texts, _, rng in asked(7, 500):
        texts = list(dict.fromkeys(texts))
        together = Patterns(texts)
        for asking in (name(rng), name(rng)):
            alone = {text for text in texts if Patterns([text]).verdict(asking)}
            assert {text for text in texts if together.found(asking) & together.mask([text])} == alone


def test_every_piece_of_an_expression_is_known() -> None:
    for texts, _, _ in asked(8, 1_000):
        for text in texts:
            expression, _ = GitIgnoreSpecPattern.pattern_to_regex(text)
            assert "".join(each.group() for each in _PIECE.finditer(expression or "")) == (expression or "")


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["x[!a]y"], ["x/y", "xby", "xay", "d/xby"]),
        (["x[^a]y", "*[!.]z"], ["x/y", "xby", "a/z", "az", ".z"]),
        (["x[+-9]y"], ["x/y", "x5y", "a/x.y", "xay"]),
        (["*.py", "!keep*"], ["a\nb.py", "a.py\n", "keep\n.py", "new\nline/keep.py"]),
        (["d?/**/a"], ["d\n/a", "d\n/\n/a", "d/a"]),
        (["lone\\", "!", "/", "# a", "[", "x"], ["lone", "lone\\", "!", "a", "[", "x"]),
    ],
)
def test_where_pathspec_is_not_git_git_is_right(tmp_path: Path, texts: list[str], names: list[str]) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("\n".join(texts) + "\n")
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=tmp_path,
        input="\0".join(names).encode(),
        capture_output=True,
        check=False,
    )
    mine = Patterns(texts)
    assert [each for each in names if mine.verdict(each)] == done.stdout.decode().split("\0")[:-1]


def test_what_is_no_pattern_is_refused_with_a_reason_and_the_others_hold() -> None:
    mine = Patterns(["a", "!", "b\\", "[z-a]", "x" * (LONGEST + 1), "#", ""])
    assert mine.refused == {
        "!": 'nothing follows its "!"',
        "b\\": "nothing follows the backslash at its end",
        "[z-a]": "in [z-a] the first comes after the last",
        "x" * (LONGEST + 1): "it is longer than 10,000 characters",
    }
    assert mine.too_much == ["x" * (LONGEST + 1)]
    assert mine.verdict("a")
    assert mine.verdict("b\\") is None


def test_sets_are_counted() -> None:
    sets = [f"[{chr(0x4E00 + index)}]x" for index in range(MOST_SETS + 1)]
    mine = Patterns([*sets, *sets])
    assert mine.refused == {sets[-1]: "there are more than 256 different [...]"}
    assert mine.verdict("\u4e00x")


HOSTILE = """\
import random
from gradguard.check.patterns import LONGEST, Patterns

names = ["a" * 60, "a" * 255 + "/" + "a" * 255, "a/" * 2_000 + "c", "b" * 255]
stars = ["*a" * 25 + "b", "*" * LONGEST, "*a" * 4_000, "?*" * 2_000 + "!", "**" * 3_000 + "b"]
folders = ["**/a/" * 30 + "b", "**/a*/" * 1_000 + "b", "a/**/" * 1_500 + "b", "*/" * 3_000 + "b"]
sets = ["[!b]*" * 1_500 + "c", "[" + "a-z" * 3_000 + "]", "*[!a]" * 1_000, "[" + "[" * 9_000 + "]"]
for text in stars + folders + sets:
    for name in names:
        Patterns([text]).verdict(name)
        Patterns([text, "!" + text]).found(name)

many = Patterns([f"dir{n}/**/file_{n}*.txt" if n % 2 else f"*.ext{n}[a-c]" for n in range(10_000)])
for n in range(1_000):
    assert many.verdict(f"src/pkg{n % 37}/module_{n}.py") is None
assert many.verdict("dir7/x/file_7z.txt")
Patterns(["a", "b"] * 500_000).verdict("c")
rare = Patterns(["*" + chr(n) for n in range(0x4E00, 0x9000)])
for n in range(0x4E00, 0x9000, 128):
    assert rare.verdict("".join(map(chr, range(n, n + 128))))
print("done")
"""


def test_no_pattern_and_no_number_of_them_takes_long() -> None:
    assert printed(HOSTILE) == "done\n"
