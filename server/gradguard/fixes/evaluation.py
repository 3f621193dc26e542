"""A bare `torch.no_grad()` made into the `with` it was meant to be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gradguard.findings import FixPlan, Span, spans_text
from gradguard.fixes.edit import Edit
from gradguard.fixes.modes import under_mode
from gradguard.source.blocks import blocks
from gradguard.source.text import Source

_DIFFERENTIATES = frozenset({"backward", "grad", "step", "requires_grad_"})


def no_grad_rest(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """A bare `torch.no_grad()` put before what follows it in its block, as a `with`."""
    path = list(_around(source, plan.span))
    statements = [node for node in path if isinstance(node, ast.stmt)]
    if not statements or not isinstance(statements[-1], ast.Expr):
        return None
    bare = statements[-1]
    owner = path[path.index(bare) - 1] if path.index(bare) else source.tree
    block = next(body for body in (*blocks(owner), source.tree.body) if bare in body)
    rest = block[block.index(bare) + 1 :]
    if not rest or any(_differentiates(one) for one in rest) or bare.lineno == rest[0].lineno:
        return None
    last = source.span(rest[-1])
    until = spans_text(last)
    wrapped = under_mode(replace(plan, span=source.span(rest[0]), data=(("until", until),)), source)
    if wrapped is None:
        return None
    return (Edit(Span(bare.lineno, 1, (bare.end_lineno or bare.lineno) + 1, 1), ""), *wrapped)


def _around(source: Source, span: Span) -> Iterator[ast.AST]:
    """Nodes that hold a stretch, from the outermost statement to the innermost."""
    body: list[ast.stmt] = source.tree.body
    while body:
        node = next(
            (
                one
                for one in body
                if one.lineno <= span.line and span.end_line <= (one.end_lineno or one.lineno)
            ),
            None,
        )
        if node is None:
            return
        if isinstance(node, ast.Expr) or not any(True for _ in blocks(node)):
            holding = [one for one in body if source.span(one).holds(span)]
            yield from holding[:1] or [node]
            return
        yield node
        inner = [
            block for block in blocks(node) if block[0].lineno <= span.line <= (block[-1].end_lineno or 0)
        ]
        body = inner[0] if inner else []


def _differentiates(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _DIFFERENTIATES
        for part in ast.walk(node)
    )
