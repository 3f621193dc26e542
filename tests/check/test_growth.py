"""What comments cost grows with their text, not with its square."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from gradguard.check.api import run
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.findings import Span
from gradguard.source.text import Source
from tests.check.rules import engine, finding, rules
from tests.counting import LINEAR, growth


def function(body: str) -> str:
    return "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())


IDLE = "x = 1  # gradguard: ignore\n"
TEXTS: dict[str, Callable[[int], str]] = {
    "idle comments": lambda count: IDLE * count,
    "in a function": lambda count: function(IDLE * count),
    "in a function each": lambda count: "def f():\n    x = 1  # gradguard: ignore[GG101]\n" * count,
    "comments that are needed": lambda count: "x = 1  # gradguard: ignore[GG101]\n" * count,
    "for the whole file": lambda count: "# gradguard: ignore-file[GG102]\n" * count,
    "in one statement": lambda count: "x = [\n" + "    1,  # gradguard: ignore\n" * count + "]\n",
    "on one line": lambda count: "x = 1  " + "# gradguard: ignore[GG101] " * count + "\n",
    "not closed": lambda count: "x = 1  " + "# gradguard: ignore[GG101 " * count + "\n",
    "rules in one comment": lambda count: f"x = 1  # gradguard: ignore[{'GG102, ' * count}]\n",
    "unknown rules": lambda count: (
        f"x = 1  # gradguard: ignore[{', '.join(map('rule-{}'.format, range(count)))}]\n"
    ),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_comments_and_findings(text: Callable[[int], str]) -> None:
    def checked(count: int) -> Callable[[], object]:
        source = Source("train.py", "import torch\n" + text(count))
        lines = source.lines.count - 2
        found = [
            replace(finding(2 + at % lines), span=Span(2 + at % lines, at, 2 + at % lines, at + 1))
            for at in range(1, count + 1)
        ]
        return lambda: run(source, Settings(), EMPTY, engine(*found), rules)

    assert growth(checked, 150) < LINEAR


LONG = {
    "a word": "x = 1  # gradguard: ignore[" + "a" * 1_000_000 + "]\n",
    "words": "x = 1  # gradguard: ignore[" + "item-in-lop, " * 80_000 + "]\n",
    "never closed": "x = 1  " + "# gradguard: ignore[" * 50_000 + "\n",
    "closed at the end": "x = 1  " + "# gradguard: ignore[" * 50_000 + "]\n",
}
CHILD = """
import sys
from gradguard.check.api import run
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.source.text import Source
from tests.check.rules import engine, rules
report = run(Source("train.py", "import torch\\n" + sys.stdin.read()), Settings(), EMPTY, engine(), rules)
assert not report.crash
assert all(len(each.message) < 200 for each in report.findings)
"""


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_megabyte_in_one_comment(text: str) -> None:
    subprocess.run([sys.executable, "-c", CHILD], input=text, text=True, check=True, timeout=20)
