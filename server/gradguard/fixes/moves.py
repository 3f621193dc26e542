"""Statements moved behind the backward that still needs what they change."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, Span, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.region import Region
from gradguard.source.text import Source


def move_after(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The statement at the span behind the statement at `after`. data: `after`, inside that statement.

    A statement alone in a `with` moves together with it. None unless both stand in one block, in this order.
    """
    goals = spans_of(dict(plan.data).get("after", ""))
    if len(goals) != 1:
        return None
    region = Region.of(source, [plan.span, *goals])
    if region is None:
        return None
    moved, goal = _line(region, plan.span), _line(region, goals[0])
    while moved is not None and goal is not None and region.parent(moved) is not region.parent(goal):
        moved = _with_around(region, moved)
    if moved is None or goal is None or moved is goal:
        return None
    block = region.parent(goal)
    body = list(getattr(block, "body", ()))
    if block is None or moved not in body or goal not in body or body.index(moved) > body.index(goal):
        return None
    start, end = body.index(moved), body.index(goal)

    def reorder(made: cst.CSTNode) -> cst.CSTNode:
        parts = list(made.body)  # type: ignore[attr-defined]
        return made.with_changes(
            body=[*parts[:start], *parts[start + 1 : end + 1], parts[start], *parts[end + 1 :]]
        )

    region.change(block, reorder)
    return region.edits()


def _line(region: Region, span: Span) -> cst.CSTNode | None:
    """The line or compound statement of what takes up a stretch."""
    node = region.find(span, cst.CSTNode)
    while node is not None and not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        node = region.parent(node)
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) != 1:
        return None
    return node


def _with_around(region: Region, node: cst.CSTNode) -> cst.CSTNode | None:
    """The `with` whose body a statement is, alone."""
    block = region.parent(node)
    around = region.parent(block) if block is not None else None
    if isinstance(block, cst.IndentedBlock) and len(block.body) == 1 and isinstance(around, cst.With):
        return around
    return None
