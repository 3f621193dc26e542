"""Where libcst lacks its compiled parser, the one in Python takes its place."""

from __future__ import annotations

import sys
from pathlib import Path

import libcst as cst
import pytest

from gradguard.fixes import parser, region
from tests.fixes.test_fixtures import CASES, expected, ident, made, read


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """libcst without its compiled parser, as in a browser."""
    monkeypatch.setitem(sys.modules, parser.NATIVE, None)  # an import of it fails
    monkeypatch.delattr(cst, "native")
    region._parsed.cache_clear()
    parser.ensure()
    assert not hasattr(sys.modules[parser.NATIVE], "__file__")


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_each_fix_writes_the_same(in_python: None, path: Path) -> None:
    assert made(read(path), path.parent.name) == expected(path)


@pytest.mark.parametrize("text", ["y = f(x)[0]\n", "if (n := 3) > 2: pass\n", "print(f'{x!r:>3} {y=}')\n"])
def test_a_statement_is_given_back(in_python: None, text: str) -> None:
    assert cst.Module([cst.parse_statement(text)]).code == text


def test_newer_syntax_is_refused(in_python: None) -> None:
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_module("match x:\n    case 1:\n        pass\n")


def test_the_compiled_one_is_used_where_it_is_there() -> None:
    parser.ensure()
    assert sys.modules[parser.NATIVE].__file__
