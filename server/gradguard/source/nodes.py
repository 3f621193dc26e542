"""The nodes of a tree that stand for a piece of the text of their own: without `Load` and `+`, which stand in many places.

As `ast.iter_child_nodes` and `ast.walk`, in a third of the steps: which fields may hold a node is known of each type.
"""

from __future__ import annotations

import ast

_PLAIN = frozenset({
    "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "rest", "simple", "tag",
    "type_comment", "type_ignores",
})  # fmt: skip
"""Fields that hold no such node in any type of node; others that hold none are seen as they are looked at."""


class _Holding(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a type that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        leaf = kind is ast.Constant
        fields = self[kind] = () if leaf else tuple(name for name in kind._fields if name not in _PLAIN)
        return fields


_HOLDING = _Holding()


def children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node, in the order of its fields."""
    found: list[ast.AST] = []
    for name in _HOLDING[type(node)]:
        held = getattr(node, name, None)
        if isinstance(held, list):
            # The parts of a list are all nodes, or names, or nodes and None where a `**` of a dictionary has no key.
            found += [part for part in held if isinstance(part, ast.AST)]
        elif isinstance(held, ast.AST):
            found.append(held)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all its parts, outer ones first."""
    found = [node]
    for each in found:
        found += children(each)
    return found
