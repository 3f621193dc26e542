"""A clone where one is needed: of what an op keeps, of a view where it is made, of a gradient."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import method
from gradguard.source.text import Source


def clone_expression(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`.clone()` behind an expression, and behind those that `also` names (`line:column:line:column;...`)."""
    return _called("clone", plan, source)


def copy_array(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`.copy()` behind an expression that gives a NumPy array."""
    return _called("copy", plan, source)


def _called(name: str, plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """A method call behind each expression of the plan; None unless all of them are found."""
    spans = [plan.span, *spans_of(dict(plan.data).get("also", ""))]
    edits: list[Edit] = []
    for span in dict.fromkeys(spans):
        region = Region.of(source, [span])
        node = region.find(span, cst.BaseExpression) if region is not None else None
        if region is None or node is None:
            return None
        region.change(node, lambda made: method(made, name))  # type: ignore[arg-type]
        found = region.edits()
        if found is None:
            return None
        edits.extend(each for each in found if each not in edits)
    return tuple(edits)
