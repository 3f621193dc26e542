"""Cells of any length are made plain, in a time that grows with the length alone."""

from __future__ import annotations

import pytest

from gradguard.source.scan import string_lines
from tests.limited import printed

CELLS = {
    "blanks": "' ' * 300_000",
    "names": "'a' * 300_000",
    "assigned": "'a=' * 300_000",
    "asked": "'a?' * 300_000",
    "empty strings": "chr(34) * 600_000",
    "long strings": "(chr(34) * 3 + chr(10)) * 300_000",
    "continued": "('!a' + chr(92) + chr(10)) * 300_000",
}


@pytest.mark.parametrize("name", list(CELLS))
def test_a_long_cell_is_made_plain(name: str) -> None:
    code = (
        f"from gradguard.source.notebook import plain\nprint(plain('%magic' + chr(10) + {CELLS[name]})[:5])"
    )
    assert printed(code).startswith("pass\n")


def test_lines_in_strings() -> None:
    assert string_lines('a\n"""b\nc\n"""; d\n\'e\n# """\nf = """\n""" + \'\'\'\n') == {2, 3, 7, 8}
