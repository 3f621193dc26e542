"""An analysis that takes what it can from the one before gives what a fresh one gives."""

from __future__ import annotations

import ast
import os
import random
import re
from pathlib import Path

import pytest

from gradguard.engine import Analysis, analyse
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES

SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Multiplies the length of random tests."""
FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = [
    FIXTURES / "inplace" / "modules.py",
    FIXTURES / "graph" / "freed.py",
    FIXTURES / "cases" / "graph" / "02_validation_total_without_guard.py",
    FIXTURES / "cases" / "inplace" / "58_custom_spectral_norm_two_passes.py",
]


def shown(analysis: Analysis) -> list[object]:
    """Everything that a person sees of an analysis."""
    found = sorted(registry.findings(analysis), key=lambda each: each.sort_key)
    return [*found, *analysis.limits]


def edited(text: str, chance: random.Random) -> str:
    """One edit as people make them: a line typed, deleted, doubled, or a word changed."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    kind = chance.choice(["delete", "double", "comment", "half", "number", "undo", "block"])
    if kind == "delete":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "comment":
        lines.insert(at, "# a remark")
    elif kind == "block":
        # A definition or statement of the top level, copied or moved to another place.
        starts = [n for n, line in enumerate(lines) if line[:1].strip()] + [len(lines)]
        first = chance.randrange(len(starts) - 1)
        block = lines[starts[first] : starts[first + 1]]
        if chance.random() < 0.5:
            del lines[starts[first] : starts[first + 1]]
            starts = [n for n, line in enumerate(lines) if line[:1].strip()] or [0]
        place = chance.choice(starts)
        lines[place:place] = block
    elif kind == "half":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif kind == "number":
        lines[at] = lines[at].replace("1", "2")
    return "\n".join(lines)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_edits_give_what_a_cold_run_gives(path: Path) -> None:
    rows = table.load()
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    text = path.read_text("utf-8")
    source = Source("program.py", text)
    before = analyse(source, rows, NO_FILES)
    for step in range(25 * SHARE):
        text = edited(text, chance) if chance.random() < 0.8 else path.read_text("utf-8")
        source = Source("program.py", text, source)
        before = analyse(source, rows, NO_FILES, before)
        cold = analyse(source, rows, NO_FILES)
        assert shown(before) == shown(cold), f"seed {seed}, step {step}"


def test_what_did_not_change_is_taken() -> None:
    text = (FIXTURES / "inplace" / "modules.py").read_text("utf-8")
    source = Source("program.py", text)
    first = analyse(source, table.load(), NO_FILES)
    last = text.rstrip("\n").split("\n")
    last[-1] += "  # typed"
    again = analyse(Source("program.py", "\n".join(last), source), table.load(), NO_FILES, first)
    taken = [key for key, record in again.records.items() if first.records.get(key) is record]
    assert len(taken) > len(again.records) / 2


USES = """
def uses(x):
    y = x.exp()
    {use}
    y.sum().backward()


def other(x):
    y = x.sigmoid()
    y += 1
    y.sum().backward()
"""
TOPS = [
    # (top level before, top level after, what a function does with it)
    ("SCALE = 1", "SCALE = torch.ones(3)", "y = y * SCALE; SCALE.add_(1)"),
    ("WRITES = False", "WRITES = True", "y.add_(1) if WRITES else None"),
    ("a = torch.ones(3); b = torch.ones(3)", "a = torch.ones(3); b = a", "z = (y * a).sum(); b.add_(1); z.backward()"),
    ("held = [1]", "held = [1, 2]", "y.add_(1) if len(held) > 1 else None"),
    ("box = {'w': 0}", "box = {'w': 1}", "y.add_(1) if box['w'] else None"),
    ("pass", "len = lambda x: 0", "y.add_(1) if len('ab') == 0 else None"),
    ("def f(t): return t.exp()\nm = f", "def f(t): return t.exp_()\nm = f", "m(y)"),
    ("def f(): return 0\nn = f()", "def f(): return 1\nn = f()", "y.add_(1) if n else None"),
    ("def f(t, write=False): y = t.add_(1) if write else t", "def f(t, write=True): y = t.add_(1) if write else t", "f(y)"),
    ("class C:\n    n = 0\nc = C()", "class C:\n    n = 1\nc = C()", "y.add_(1) if c.n else None"),
    ("class B:\n    def g(self, t): return t\nclass C(B): pass", "class B:\n    def g(self, t): return t.add_(1)\nclass C(B): pass", "C().g(y)"),
    ("class C(torch.nn.Module):\n    def forward(self, t): return t", "class C:\n    def __call__(self, t): return t.add_(1)", "C()(y)"),
    ("mode = torch.no_grad()", "mode = torch.enable_grad()", "\n    with mode:\n        y.add_(1)"),
    ("from torch import exp as op", "from torch import exp_ as op", "op(y)"),
    ("p = torch.ones(3)", "p = torch.ones(3, requires_grad=True)", "p.add_(1)"),
    ("x0 = print()\np = torch.ones(3)", "p = torch.ones(3)", "p.requires_grad_(); p.add_(1)"),
    ("if True:\n    k = 0", "if True:\n    k = 1", "y.add_(1) if k else None"),
    ("k = 0\nh = lambda t: t", "k = 0\nh = lambda t: t.add_(1)", "h(y)"),
    ("import a.b", "import a.b\na = 1", "y.add_(1) if a == 1 else None"),
    ("z = [[0]]\nw = z[0]", "z = [[0]]\nw = [0]", "w.append(1); y.add_(1) if len(z[0]) > 1 else None"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "use"), TOPS)
def test_what_the_top_level_changes_is_seen_and_nothing_else_is_done_again(
    before: str, after: str, use: str
) -> None:
    rows = table.load()

    def text(top: str) -> str:
        return "import torch\n" + top + "\n" + USES.replace("{use}", use)

    unrelated = "unrelated = 1\n" + text(before)
    for first, second in (
        (text(before), text(after)),
        (text(after), text(before)),
        (text(before), unrelated),
    ):
        source = Source("program.py", first)
        old = analyse(source, rows, NO_FILES)
        source = Source("program.py", second, source)
        warm = analyse(source, rows, NO_FILES, old)
        assert shown(warm) == shown(analyse(source, rows, NO_FILES)), (first, second)
        names = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
        taken = {key for key, record in warm.records.items() if old.records.get(key) is record}
        assert names["other"] in taken
        # What writes a global's own memory looks at all of them: another may share it.
        if second == unrelated and not re.search(r"\b(SCALE|[bp])\.\w+_\(", use):
            assert names["uses"] in taken


def test_the_programs_on_top_levels_tell_old_and_new_apart() -> None:
    rows = table.load()
    apart = 0
    for before, after, use in TOPS:
        answers = []
        for top in (before, after):
            source = Source("program.py", "import torch\n" + top + "\n" + USES.replace("{use}", use))
            answers.append([each.message for each in registry.findings(analyse(source, rows, NO_FILES))])
        apart += answers[0] != answers[1]
    assert apart >= len(TOPS) - 4


ONE = "def f(t):\n    return t.exp()\n\n\n"
OTHER = "def f(t):\n    return t.exp_()\n\n\n"
USER = "def uses(x):\n    y = x.exp()\n    f(y)\n    y.sum().backward()\n"


PLAIN = "class C:\n    def __init__(self):\n        self.k = 1\n\n    def m(self, x):\n        y = x.exp()\n        y.sum().backward()\n\n\n"
WRITES = PLAIN.replace("y = x.exp()", "y = x.exp()\n        y += self.k")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, PLAIN + WRITES),
        (WRITES, WRITES + PLAIN),
        (PLAIN + WRITES, PLAIN),
        (WRITES + PLAIN, PLAIN + WRITES),
        (ONE + OTHER, OTHER + ONE),
        (OTHER + ONE, ONE + OTHER),
        (ONE, ONE + OTHER),
        (OTHER + ONE, OTHER),
        (ONE + OTHER, ONE),
        ("if c:\n    pass\n\n\n" + ONE, OTHER + ONE),
    ],
)
@pytest.mark.parametrize("end", ["", "\nuses(torch.rand(3, requires_grad=True))\n"], ids=["called", "script"])
def test_a_function_in_the_place_of_another_with_the_same_head(before: str, after: str, end: str) -> None:
    rows = table.load()
    source = Source("program.py", "import torch\n" + before + USER + end)
    old = analyse(source, rows, NO_FILES)
    source = Source("program.py", "import torch\n" + after + USER + end, source)
    assert shown(analyse(source, rows, NO_FILES, old)) == shown(analyse(source, rows, NO_FILES))
