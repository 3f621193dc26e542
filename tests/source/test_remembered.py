"""What is kept on statements is asked once of each, also when the file around them changes."""

from __future__ import annotations

import ast

from gradguard.source.blocks import gathered
from gradguard.source.text import Source

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def test_only_the_edited_statement_is_asked_again() -> None:
    asked: list[str] = []

    def ask(statement: ast.stmt) -> str:
        asked.append(ast.unparse(statement))
        return asked[-1]

    before = Source("program.py", TEXT, Source("program.py", ""))
    assert gathered(before.tree, "_gradguard_test", ask, list) == asked
    assert len(asked) == 2
    after = Source("program.py", TEXT.replace("return 2", "return 3"), before)
    assert gathered(after.tree, "_gradguard_test", ask, list) == [
        "def f():\n    return 1",
        "def g():\n    return 3",
    ]
    assert asked[2:] == ["def g():\n    return 3"]
