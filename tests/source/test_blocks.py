"""The way down to a node of a tree."""

from __future__ import annotations

import ast
import textwrap

import pytest

from gradguard.source.blocks import around, blocks, touching

TEXT = textwrap.dedent(
    """\
    import torch

    @torch.no_grad()
    def evaluate(model, scale=lambda v: v * marked_default):
        for batch in model:
            try:
                batch = model(batch)
            except ValueError:
                marked_handler
            else:
                pass
            finally:
                a = 1; b = marked_second
        else:
            marked_else

    class Net:
        def forward(self, x):
            match x:
                case 1:
                    return (
                        x +
                        marked_case
                    )
            return marked_last
    marked_end
    """
)


def _named(tree: ast.Module, name: str) -> ast.AST:
    return next(node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name)


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("marked_default", ["FunctionDef"]),
        ("marked_handler", ["FunctionDef", "For", "Try", "Expr"]),
        ("marked_second", ["FunctionDef", "For", "Try", "Assign"]),
        ("marked_else", ["FunctionDef", "For", "Expr"]),
        ("marked_case", ["ClassDef", "FunctionDef", "Match", "Return"]),
        ("marked_last", ["ClassDef", "FunctionDef", "Return"]),
        ("marked_end", ["Expr"]),
    ],
)
def test_the_statements_around_a_node(name: str, statements: list[str]) -> None:
    tree = ast.parse(TEXT)
    node = _named(tree, name)
    found = [block[index] for block, index in around(tree, node)]
    assert [type(one).__name__ for one in found] == statements
    holding = [one for one in ast.walk(tree) if isinstance(one, ast.stmt) and node in ast.walk(one)]
    assert found == holding  # as a look at the whole file tells


def test_a_node_of_another_tree_has_nothing_around() -> None:
    assert around(ast.parse(TEXT), _named(ast.parse(TEXT), "marked_end")) == []


def test_the_statements_that_share_lines_with_a_stretch() -> None:
    tree = ast.parse(TEXT)
    names = {
        line: [type(tree.body[index]).__name__ for index in touching(tree.body, line, line)]
        for line in range(1, len(TEXT.splitlines()) + 1)
    }
    assert (names[1], names[2], names[3]) == (["Import"], [], ["FunctionDef"])  # a decorator counts
    for line, found in names.items():
        holding = [
            one
            for one in tree.body
            if min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", []))])
            <= line
            <= (one.end_lineno or 0)
        ]
        assert found == [type(one).__name__ for one in holding]


def test_no_block_is_empty() -> None:
    for node in ast.walk(ast.parse(TEXT)):
        assert all(block and all(isinstance(one, ast.stmt) for one in block) for block in blocks(node))
