"""What stands at a file's top level: the functions that may be called from outside, and what defines something."""

from __future__ import annotations

import ast

from gradguard.engine.driver import alike
from gradguard.source.text import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef


def defines(statement: ast.stmt) -> bool:
    """Statements that a function may need: definitions, imports and plain constants."""
    if isinstance(
        statement,
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try, ast.If),
    ):
        return True
    return isinstance(statement, (ast.Assign, ast.AnnAssign))


def only_defines(source: Source) -> bool:
    """Whether a file does the same as a script as when it is imported."""
    if source.errors or "__main__" in source.text:
        # What does not parse may do anything.
        return False
    return all(defines(statement) or alike.says(statement) for statement in source.tree.body)


def functions_in(tree: ast.Module) -> list[tuple[str, str, Function]]:
    """(name, class, node) of each function and method that does something, those called from outside first."""
    found: list[tuple[str, str, Function]] = []
    pending: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
    while pending:
        owner, body = pending.pop(0)
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not _is_stub(statement):
                    found.append((statement.name, owner, statement))
            elif isinstance(statement, ast.ClassDef) and not owner:
                pending.append((statement.name, statement.body))
            elif isinstance(statement, (ast.If, ast.Try)) and not owner:
                pending.append((owner, [*statement.body, *statement.orelse]))
    return sorted(found, key=lambda one: (one[0] in _LAST, one[0].startswith("_") and one[0] != "__call__"))


_LAST = frozenset({"__init__", "__repr__", "__len__", "__str__", "extra_repr"})


def _is_stub(node: Function) -> bool:
    """Whether a function does nothing or only raises, apart from its docstring."""
    body = node.body[1:] if alike.says(node.body[0]) else node.body
    return not body or all(isinstance(s, (ast.Pass, ast.Raise)) or alike.says(s) for s in body)
