"""Grad modes: statements under `torch.no_grad()`, functions decorated with it, inference mode relaxed."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradguard.findings import FixPlan
from gradguard.fixes.clones import spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression
from gradguard.source.text import Source


def under_mode(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The statement (to the statement that `until` names) inside `with torch.no_grad():`. data: `mode`."""
    data = dict(plan.data)
    spans = [plan.span, *spans_of(data.get("until", ""))]
    region = Region.of(source, spans)
    if region is None:
        return None
    first = region.find(spans[0], cst.BaseSmallStatement) or region.find(spans[0], cst.BaseCompoundStatement)
    last = region.find(spans[-1], cst.BaseSmallStatement) or region.find(spans[-1], cst.BaseCompoundStatement)
    if first is None or last is None:
        return None
    head = _line(region, first)
    end = _line(region, last)
    mode = expression(f"{torch_name(source)}.{data.get('mode', 'no_grad')}()")
    if isinstance(head, cst.SimpleStatementSuite):
        return None
    block = region.parent(head)
    body = list(getattr(block, "body", ()))
    if head not in body or end not in body:
        return None
    chosen: Sequence[cst.BaseStatement] = body[body.index(head) : body.index(end) + 1]
    leading = getattr(chosen[0], "leading_lines", ())

    def wrap(made: cst.CSTNode) -> cst.CSTNode:
        parts = list(made.body)  # type: ignore[attr-defined]
        at = body.index(head)
        inner = parts[at : at + len(chosen)]
        inner[0] = inner[0].with_changes(leading_lines=())
        block = cst.With(
            [cst.WithItem(mode)], cst.IndentedBlock(inner, indent=region.indent), leading_lines=leading
        )
        return made.with_changes(body=[*parts[:at], block, *parts[at + len(chosen) :]])

    assert block is not None
    region.change(block, wrap)
    return with_torch(source, region.edits())


def decorate(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`@torch.no_grad()` on a function. data: `mode`."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.FunctionDef) if region is not None else None
    if region is None or node is None:
        return None
    mode = cst.Decorator(expression(f"{torch_name(source)}.{dict(plan.data).get('mode', 'no_grad')}()"))
    region.change(node, lambda made: made.with_changes(decorators=[*made.decorators, mode]))  # type: ignore[attr-defined]
    return with_torch(source, region.edits())


def relax_inference(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`torch.no_grad()` where `torch.inference_mode()` is called."""
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None:
        return None
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value == "inference_mode":
        made: cst.BaseExpression = func.with_changes(attr=cst.Name("no_grad"))
    elif isinstance(func, cst.Name) and func.value == "inference_mode":
        made = expression(f"{torch_name(source)}.no_grad")
    else:
        return None
    region.replace(call, call.with_changes(func=made, args=()))
    return with_torch(source, region.edits())


def _line(region: Region, statement: cst.CSTNode) -> cst.CSTNode:
    if isinstance(statement, cst.BaseSmallStatement):
        parent = region.parent(statement)
        assert parent is not None
        return parent
    return statement
