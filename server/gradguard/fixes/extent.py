"""Which lines a fix needs to be read as a tree."""

from __future__ import annotations

import ast

from gradguard.findings import FixPlan, Span, spans_of
from gradguard.source.blocks import blocks, first_line, last_line, touching
from gradguard.source.text import BOM, Source

WHOLE = frozenset({"return-gradient"})
"""Kinds of fixes that need the whole function around."""
LEAST = 300
"""Characters that each fix counts for at least."""


def cost(plan: FixPlan, source: Source) -> int:
    """About how many characters are read as a tree for a fix; that takes by far the most of its time."""
    others = [span for _, value in plan.data if _is_spans(value) for span in spans_of(value)]
    lines = extent(source, [plan.span, *others], whole=plan.kind in WHOLE)
    if lines is None:
        return LEAST
    return max(LEAST, source.lines.start(lines[1] + 1) - source.lines.start(lines[0]))


def _is_spans(value: str) -> bool:
    return value.count(":") >= 3 and not value.strip("0123456789:;")


def extent(source: Source, spans: list[Span], *, whole: bool = False) -> tuple[int, int] | None:
    """First and last line of the smallest run of whole lines, of one block, that holds all spans."""
    if not spans or any(source.is_broken(line) for span in spans for line in (span.line, span.end_line)):
        return None
    first, last = min(span.line for span in spans), max(span.end_line for span in spans)
    best: tuple[int, int] | None = None
    block: list[ast.stmt] = source.tree.body
    while block:
        inside = [block[index] for index in touching(block, first, last)]
        if not inside:
            break
        run = first_line(inside[0]), last_line(inside[-1])
        if _covers(run, first, last) and _alone(source, block, inside, run):
            best = run
        if len(inside) > 1:
            break
        if whole and best is not None and isinstance(inside[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            return best
        block = next((body for body in blocks(inside[0]) if _holds(body, first, last)), [])
    if whole:
        top = [source.tree.body[index] for index in touching(source.tree.body, first, last)]
        if top and not any(
            isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for one in top
        ):
            body = source.tree.body
            return (first_line(body[0]), last_line(body[-1]))
    return best


def _covers(run: tuple[int, int], first: int, last: int) -> bool:
    return run[0] <= first and last <= run[1]


def _holds(body: list[ast.stmt], first: int, last: int) -> bool:
    return first_line(body[0]) <= first and last <= last_line(body[-1])


def _alone(source: Source, block: list[ast.stmt], inside: list[ast.stmt], run: tuple[int, int]) -> bool:
    """Whether the lines belong to these statements of the block only: no suite on the line of its head."""
    start = source.line(inside[0].lineno)
    lead = start[: source.column(inside[0].lineno, inside[0].col_offset) - 1]
    if isinstance(inside[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        lead = lead[: len(lead) - len(lead.lstrip())]
    return not lead.strip(" \t\f" + BOM)
