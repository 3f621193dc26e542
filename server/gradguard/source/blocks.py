"""The blocks of statements of a tree, and the way down to a node, without looking at the rest of a long file."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from gradguard.source.nodes import children

Block = list[ast.stmt]
T = TypeVar("T")
R = TypeVar("R")
N = TypeVar("N", bound=ast.AST)


def kept(node: N, name: str, ask: Callable[[N], T]) -> T:
    """What a question finds in a node, kept on it as `name`; it must ask of nothing else."""
    if not hasattr(node, name):
        setattr(node, name, ask(node))
    found: T = getattr(node, name)
    return found


def gathered(
    tree: ast.Module, name: str, ask: Callable[[ast.stmt], T], join: Callable[[Iterable[T]], R]
) -> R:
    """What a question finds in each statement at the top level, joined; kept as `name` on statements and tree.

    Statements outlive edits of others, so that after a keystroke one of them is asked anew and not the file. A tree
    lasts until the next edit, so that its findings join the answers once and not each of them.
    """
    return kept(tree, name, lambda whole: join(kept(statement, name, ask) for statement in whole.body))


def union(sets: Iterable[frozenset[T]]) -> frozenset[T]:
    """What any of the sets has."""
    return frozenset(chain.from_iterable(sets))


def by_name(lists: Iterable[Mapping[str, list[T]]]) -> dict[str, list[T]]:
    """What the mappings have under each name, in their order."""
    found: dict[str, list[T]] = {}
    for each in lists:
        for name, values in each.items():
            found.setdefault(name, []).extend(values)
    return found


def blocks(node: ast.AST) -> Iterator[Block]:
    """The blocks of a module or of a compound statement; none is empty."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def first_line(statement: ast.stmt) -> int:
    """The line a statement starts at, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def last_line(statement: ast.stmt) -> int:
    """The line a statement ends at."""
    return statement.end_lineno or statement.lineno


def touching(block: Block, first: int, last: int) -> range:
    """Indices of the statements of a block that share lines with a stretch."""
    return range(bisect_left(block, first, key=last_line), bisect_right(block, last, key=first_line))


def above(tree: ast.Module, node: ast.AST) -> list[ast.AST]:
    """A node, what it is a part of, and so on up to its statement at the top level; empty where it stands elsewhere."""
    line = getattr(node, "lineno", 0)
    for index in touching(tree.body, line, line):
        statement = tree.body[index]
        parents = kept(statement, "_gradguard_parents", _parents)
        if node is statement or node in parents:
            found = [node]
            while found[-1] is not statement:
                found.append(parents[found[-1]])
            return found
    return []


def _parents(statement: ast.stmt) -> dict[ast.AST, ast.AST]:
    """What each node in a statement is a part of."""
    found: dict[ast.AST, ast.AST] = {}
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        for child in children(node):
            found[child] = node
            waiting.append(child)
    return found


def around(tree: ast.Module, node: ast.AST) -> list[tuple[Block, int]]:
    """Each block that holds a node, from the outside in, with the index of the statement it is in or is."""
    found: list[tuple[Block, int]] = []
    outer: ast.AST = tree
    for statement in reversed(above(tree, node)):
        if isinstance(statement, ast.stmt):
            line = first_line(statement)
            found += [
                (block, index)
                for block in blocks(outer)
                for index in touching(block, line, line)
                if block[index] is statement
            ]
            outer = statement
    return found


def way_down(
    tree: ast.Module, first: int, last: int, holds: Callable[[ast.stmt], bool]
) -> list[tuple[Block, int]]:
    """Each block with the index of a statement that holds what is sought, which touches these lines, from the outside in."""
    found: list[tuple[Block, int]] = []
    at: ast.AST | None = tree
    while at is not None:
        inner = next(
            (
                (block, index)
                for block in blocks(at)
                for index in touching(block, first, last)
                if holds(block[index])
            ),
            None,
        )
        if inner is not None:
            found.append(inner)
        at = inner[0][inner[1]] if inner is not None else None
    return found
