"""The name under which a file knows torch, and the import where it has none."""

from __future__ import annotations

import ast

from gradguard.findings import Span
from gradguard.fixes.edit import Edit
from gradguard.source.text import Source


def torch_name(source: Source) -> str:
    """`torch`, or the name that the file's top level imports it under."""
    return _imported(source) or "torch"


def with_torch(source: Source, edits: tuple[Edit, ...] | None) -> tuple[Edit, ...] | None:
    """The edits, with an `import torch` where their text needs one that the file lacks."""
    name = torch_name(source)
    if not edits or not any(f"{name}." in edit.replacement for edit in edits):
        return edits
    if hidden(source):
        return None
    if _imported(source) is not None:
        return edits
    return (_import(source), *edits)


def hidden(source: Source) -> bool:
    """Whether torch's name means something else in a part of the file."""
    name = torch_name(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = "" if isinstance(node, ast.Import) else f"{node.module}."
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                whole = module + (alias.name if alias.asname else bound)
                if bound == name and whole.partition(".")[0] != "torch":
                    return True
    return False


def _imported(source: Source) -> str | None:
    for statement in source.tree.body:
        for alias in statement.names if isinstance(statement, ast.Import) else ():
            if alias.name == "torch" or (alias.name.startswith("torch.") and alias.asname is None):
                return alias.asname or "torch"
    return None


def _import(source: Source) -> Edit:
    """Before the first import that is not of `__future__`, else behind the docstring."""
    at = 1
    for index, statement in enumerate(source.tree.body):
        docstring = (
            index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            at = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
            break
        at = (statement.end_lineno or statement.lineno) + 1
    column = 2 if at == 1 and source.text.startswith("\ufeff") else 1
    return Edit(Span(at, column, at, column), f"import torch{source.lines.line_end}")
