"""What of an earlier analysis still stands after an edit.

A statement whose text did not change keeps its nodes from version to version, so that identity of nodes tells
what changed. An entry's answer depends on the functions it entered and on what surrounds them: every statement
of the top level that is not a function, and what a function's `def` line says. If all of that is the same, so
is the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradguard.ops.table import Table
from gradguard.source.text import Source

if TYPE_CHECKING:
    from gradguard.tape.entry import Analysis, Files

Surroundings = tuple[object, ...]


def surroundings(body: Iterable[ast.stmt]) -> Surroundings:
    """One token for each statement; equal where they give the same names and objects."""
    return tuple(_token(statement) for statement in body)


def _token(statement: ast.stmt) -> object:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return _head(statement)
    if isinstance(statement, ast.ClassDef):
        known: object = getattr(statement, "_gradguard_token", None)
        if known is None:
            parts = [ast.dump(base) for base in (*statement.bases, *statement.decorator_list)]
            parts += [ast.dump(keyword) for keyword in statement.keywords]
            inner = tuple(_token(part) for part in statement.body)
            known = ("class", statement.name, tuple(parts), inner)
            statement._gradguard_token = known  # type: ignore[attr-defined]
        return known
    return statement


def _head(function: ast.FunctionDef | ast.AsyncFunctionDef) -> object:
    known: object = getattr(function, "_gradguard_token", None)
    if known is None:
        decorators = tuple(ast.dump(one) for one in function.decorator_list)
        known = ("def", function.name, ast.dump(function.args), decorators)
        function._gradguard_token = known  # type: ignore[union-attr]
    return known


def functions_of(tree: ast.Module) -> frozenset[ast.AST]:
    """Every function and lambda of a file."""
    return frozenset().union(*(_functions_in(statement) for statement in tree.body))


def _functions_in(statement: ast.stmt) -> frozenset[ast.AST]:
    known: frozenset[ast.AST] | None = getattr(statement, "_gradguard_functions", None)
    if known is None:
        known = frozenset(
            node
            for node in ast.walk(statement)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        )
        statement._gradguard_functions = known  # type: ignore[attr-defined]
    return known


def stands(previous: Analysis, source: Source, table: Table, files: Files, around: Surroundings) -> bool:
    """Whether anything of `previous` may be taken: same table, same surroundings, other files unchanged."""
    if previous.path != source.path or previous.table is not table or previous.around != around:
        return False
    return all(
        files.source(path) is known for path, known in previous.sources.items() if path != previous.path
    )
