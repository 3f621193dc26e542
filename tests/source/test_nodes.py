"""The nodes of a tree, without contexts and operators."""

from __future__ import annotations

import ast
from pathlib import Path

from gradguard.source.nodes import children, walk

SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
ALL = """
match given:
    case {"a": [1, *rest], **others} if others: pass
    case Point(x=0) | None as point: pass
{**first, "a": -1}
async def work(a, /, *b: int, c=1, **d) -> None:
    async with a as b: yield [await x async for x in d if x]
f"{a!r:>{width}}"
"""
TEXTS = [ALL, *(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))]


def test_all_nodes_are_met_once_but_those_of_no_text_of_their_own() -> None:
    for text in TEXTS:
        tree = ast.parse(text)
        met = walk(tree)
        assert len(met) == len(set(met))
        assert set(met) == {node for node in ast.walk(tree) if not isinstance(node, SIGNS)}


def test_parts_come_in_the_order_of_the_fields() -> None:
    call = ast.parse("f(a, *b, c=d)").body[0].value  # type: ignore[attr-defined]
    assert [ast.unparse(part) for part in children(call)] == ["f", "a", "*b", "c=d"]
