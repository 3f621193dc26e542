"""How an expression is quoted in a message."""

from __future__ import annotations

import ast

from gradguard.source.printable import quotable


def source_text(node: ast.AST | None, limit: int = 40) -> str:
    """Source of an expression on one line, shortened; empty where there is none."""
    if node is None:
        return ""
    if isinstance(node, ast.Name):
        return node.id
    # Remembered on the tree itself, which lives as long as the answer does.
    known: str | None = getattr(node, "_gradguard_source", None)
    if known is None:
        try:
            known = quotable(ast.unparse(node))
        except (ValueError, RecursionError, AttributeError):
            known = ""
        node._gradguard_source = known  # type: ignore[attr-defined]
    return known if len(known) <= limit else known[: limit - 1] + "…"
