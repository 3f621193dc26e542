"""Reading texts that are half typed, oddly encoded, or no Python at all."""

from __future__ import annotations

import ast
import os
import pathlib
import random
import sysconfig

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradguard.findings import Span
from gradguard.source.ipynb import read_notebook
from gradguard.source.lines import LineIndex, width
from gradguard.source.notebook import join, plain
from gradguard.source.scan import boundaries, string_end
from gradguard.source.text import Source

ROOT = pathlib.Path(__file__).parents[2]
ODD = st.lists(
    st.sampled_from(
        [*"ab1 \t\n\r\x0c\x0b\x85\u2028é😋\ud800\0()[]{}:\"'#\\@,=.", "def f", "class A:\n  ", '"""']
    )
).map("".join)


PREFIXES = 25 * int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Prefixes of each fixture; with 1000 it is every one."""


def dump(source: Source) -> str:
    return ast.dump(source.tree, include_attributes=True)


def shape(source: Source) -> list[object]:
    """What a text alone decides, whatever came before it."""
    return [(c.line, c.offset, c.text, [(p.line, p.text, p.errors) for p in c.pieces]) for c in source.chunks]


def library() -> list[pathlib.Path]:
    return sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))


# Recovery


def test_pieces_of_whole_files_are_the_whole_tree() -> None:
    for path in library()[:60]:
        text = path.read_text("utf-8", errors="replace")
        source = Source("x.py", text)
        assert dump(source) == ast.dump(ast.parse(text), include_attributes=True), path
        assert "".join(chunk.text for chunk in source.chunks) == text
        assert (
            len(source.pieces) == 1 or max(len(piece.body) for piece in source.pieces) <= 2 or ";" in text
        ), path


BROKEN = """\
import torch

def one(x):
    return x + 1

def two(x):
    y = foo(x
    return y

class Net:
    def first(self):
        return 1

    def second(self, x):
        return x[

    def third(self):
        return 3

z = (1 +
w = 2
def last():
    return 4
"""


def test_one_open_bracket_loses_one_piece() -> None:
    source = Source("x.py", BROKEN)
    names = [getattr(each, "name", type(each).__name__) for each in source.tree.body]
    assert names == ["Import", "one", "Net", "Assign", "last"]
    (net,) = [each for each in source.tree.body if isinstance(each, ast.ClassDef)]
    assert [(each.name, each.lineno) for each in net.body if isinstance(each, ast.FunctionDef)] == [
        ("first", 11),
        ("third", 17),
    ]
    assert source.broken == ((6, 9), (14, 16), (20, 20))
    assert source.is_broken(7)
    assert not source.is_broken(11)
    assert source.errors[0].line in range(6, 10)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\ny = '''\nimport os\n'''\nz = (\nimport torch\n",
        'def f():\n    """doc\n\ndef g():\n    """doc"""\n    return 1\n\ndef h():\n    return 2\n',
        "@decorator\n@other(\ndef f():\n    pass\nx = 1\n",
        "class A(\n    B,\n    def f(self): pass\nx = 1\n",
        "if x:\n    pass\nelse:\n    y = [\nz = 1\n",
        "x = f'{a['\nz = 1\n",
    ],
)
def test_the_last_statement_survives(text: str) -> None:
    source = Source("x.py", text)
    assert source.errors
    last = source.tree.body[-1] if source.tree.body else None
    assert last is not None
    assert last.end_lineno == text.count("\n")


def test_unchanged_functions_keep_their_nodes_when_lines_move() -> None:
    text = "def f():\n    return 1\n\nclass C:\n    def m(self):\n        return 2\n\n    def n(self):\n        return 3\n\nx = 1\n"
    before = Source("x.py", text)
    f, c, x = before.tree.body
    assert isinstance(c, ast.ClassDef)
    m, n = c.body
    after = Source(
        "x.py", text.replace("return 1", "return 1\n    # more\n").replace("return 2", "return 22"), before
    )
    f2, c2, x2 = after.tree.body
    assert isinstance(c2, ast.ClassDef)
    assert f2 is not f
    assert x2 is x
    assert x2.lineno == 13
    assert c2.body[0] is not m
    assert c2.body[1] is n
    assert dump(after) == ast.dump(ast.parse(after.text), include_attributes=True)


@pytest.mark.parametrize("seed", range(6))
def test_random_edits_read_as_if_they_were_the_first_text(seed: int) -> None:
    rng = random.Random(seed)
    words = ["(", ")", '"', '"""', "'", "\n", "x", "    ", "# a", "\\", "def f():\n", "@d\n", "[", "\r\n", "é😋", "else:\n",
             "class A:\n    x=1\n    def g(self):\n        return (1\n", "\x0c", "\u2028"]  # fmt: skip
    text = BROKEN.replace("(x\n", "(x)\n").replace("[\n", "[0]\n").replace("1 +\n", "1)\n")
    past = [text]
    current = Source("x.py", text)
    for _ in range(250):
        at = rng.randrange(len(text) + 1)
        kind = rng.random()
        if kind < 0.4:
            text = text[:at] + rng.choice(words) + text[at:]
        elif kind < 0.6:
            text = text[:at] + text[at + rng.randrange(1, 60) :]
        elif kind < 0.75:
            source = rng.randrange(len(text) + 1)
            text = text[:at] + text[source : source + 150] + text[at:]
        else:
            text = rng.choice(past)
        current = Source("x.py", text, current)
        cold = Source("x.py", text)
        assert shape(current) == shape(cold)
        assert dump(current) == dump(cold)
        if not cold.errors:
            past.append(text)


def test_every_prefix_of_every_fixture_is_read() -> None:
    files = sorted(ROOT.glob("fixtures/**/*.py"))
    assert files
    rng = random.Random(1)
    for path in files:
        text = path.read_text("utf-8")
        current: Source | None = None
        step = max(1, len(text) // PREFIXES)
        for end in range(rng.randrange(step), len(text) + 1, step):
            current = Source("x.py", text[:end], current)
            assert "".join(chunk.text for chunk in current.chunks) == text[:end]
            for statement in current.tree.body:
                assert 1 <= current.span(statement).end_line <= current.lines.count


@settings(max_examples=300, deadline=None)
@given(ODD, ODD)
def test_any_text_is_read_and_nothing_is_lost(first: str, second: str) -> None:
    one = Source("x.py", first)
    two = Source("x.py", second, one)
    assert "".join(chunk.text for chunk in two.chunks).lstrip("\f") == second.lstrip("\ufeff\f")
    assert shape(two) == shape(Source("x.py", second))
    for error in two.errors:
        assert 1 <= error.first <= error.line <= error.last


# Lexical scan


def test_strings_with_nested_quotes() -> None:
    text = 'f"{x["a"]:>{w}} {{ {y!r}" + "b"'
    assert string_end(text, 1, '"', nested_quotes=True) == text.index(" + ")
    text = "f'''{\n'a'\n}''' #"
    assert string_end(text, 1, "'''", nested_quotes=True) == text.index(" #")
    lines = "a = f\"{x[\n'k']}\"\nb = 1\n"
    assert list(boundaries(lines, nested_quotes=True)) == [lines.index("b = 1")]
    assert string_end('rf"a{b:"', 2, '"', nested_quotes=True) == len('rf"a{b:"')


# Places


@settings(max_examples=300, deadline=None)
@given(ODD, st.integers(0, 60), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions_go_there_and_back(text: str, at: int, encoding: str) -> None:
    index = LineIndex(text)
    at = min(at, len(text))
    line, column = index.position(at)
    assert index.offset(line, column) in (at, at - 1)  # between \r and \n lies no position
    units = index.units(line, column, encoding)
    assert units == width(index.line(line)[: column - 1], encoding)
    assert index.column(line, units, encoding) == min(column, len(index.line(line)) + 1)
    assert "".join(index.line(n) for n in range(1, index.count + 1)) == text.replace("\r", "").replace(
        "\n", ""
    )


def test_units_inside_a_character_are_those_of_its_start() -> None:
    index = LineIndex("a😋b")
    assert [index.column(1, n, "utf-16") for n in range(6)] == [1, 2, 2, 3, 4, 4]
    assert [index.column(1, n, "utf-8") for n in range(8)] == [1, 2, 2, 2, 2, 3, 4, 4]


@pytest.mark.parametrize(
    "text", ["\ufeffé = x(1)\n", "s = '😋é'; x(1)\n", "\x0cx(1)\n", "a = 1\r\nx(1)\r\n", "a\rx(1)"]
)
def test_spans_of_nodes_cover_their_text(text: str) -> None:
    source = Source("x.py", text)
    (call,) = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    assert source.slice(source.span(call)) == "x(1)"


def test_spans_are_clamped_to_the_text() -> None:
    source = Source("x.py", "x\n")
    assert source.slice(Span(5, 5, 9, 9)) == ""
    assert source.slice(Span(1, 1, 9, 9)) == "x\n"


# Notebooks


def test_cells_become_one_program_line_by_line() -> None:
    cells = [
        "%matplotlib inline\nimport torch\n!pip install x \\\n  y\nif 1:\n    %time f()",
        "x = !ls\ny = 5 % 2\nx.foo?\n?x\ns = '''\n%a\n'''\n",
        "%%bash\nls (\n",
        "%%time\nz = 1",
        "",
    ]
    joined = join(cells)
    assert joined.starts == (1, 7, 14, 16, 18)
    assert joined.cell(1) == 0
    assert joined.cell(13) == 1
    assert joined.cell(17) == 3
    tree = ast.parse(joined.text)
    assert joined.text.split("\n")[11] == "%a"
    assert [node.lineno for node in tree.body if isinstance(node, ast.Assign)] == [7, 8, 11, 17]
    for cell in cells:
        assert plain(cell).count("\n") == cell.count("\n")


def test_an_open_bracket_ends_with_its_cell() -> None:
    joined = join(["x = (", "y = 1", "z = '''", "w = 2"])
    source = Source("n.ipynb", joined.text, breaks=joined.starts[1:])
    assert [node.lineno for node in source.tree.body] == [2, 4]
    assert source.broken == ((1, 1), (3, 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a notebook"),
        ("[]", "no list of cells"),
        ('{"cells": [{"cell_type": "code", "source": 3}]}', "cell 1"),
    ],
)
def test_notebook_files_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_notebook(text)


def test_notebook_files() -> None:
    text = '{"cells": [{"cell_type": "markdown", "source": "#"}, {"cell_type": "code", "source": ["a\\n", "b"]}]}'
    assert [cell.text for cell in read_notebook(text).cells] == ["a\nb"]
