"""Grad modes: statements under `torch.no_grad()`, functions decorated with it, inference mode relaxed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Change, Region
from gradguard.fixes.syntax import expression, text_of
from gradguard.source.text import Source


def under_mode(plan: FixPlan, source: Source, mode: str = "no_grad") -> tuple[Edit, ...] | None:
    """The statement (to the statement that `until` names) inside `with torch.no_grad():`."""
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
    item = cst.WithItem(expression(f"{torch_name(source)}.{mode}()"))

    def under(body: Sequence[cst.BaseStatement], leading: Sequence[cst.EmptyLine]) -> cst.With:
        return cst.With([item], cst.IndentedBlock(body, indent=region.indent), leading_lines=leading)

    if isinstance(head, (cst.SimpleStatementSuite, cst.SimpleStatementLine)) and (
        len(head.body) > 1 or isinstance(head, cst.SimpleStatementSuite)
    ):
        if first is not last or not isinstance(first, cst.BaseSmallStatement):
            return None
        region.change(head, _taken_apart(list(head.body).index(first), under, region.indent))
        return with_torch(source, region.edits())
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
        return made.with_changes(body=[*parts[:at], under(inner, leading), *parts[at + len(chosen) :]])

    assert block is not None
    region.change(block, wrap)
    return with_torch(source, region.edits())


def _taken_apart(
    at: int, under: Callable[[list[cst.BaseStatement], Sequence[cst.EmptyLine]], cst.With], indent: str
) -> Change:
    """One of several statements of a line, or of a suite behind a colon, put under a `with` of its own."""

    def change(made: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
        assert isinstance(made, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        groups = [made.body[:at], made.body[at : at + 1], made.body[at + 1 :]]
        lines = [cst.SimpleStatementLine(_ended(group)) if group else None for group in groups]
        final = max(i for i, line in enumerate(lines) if line is not None)
        lines[final] = lines[final].with_changes(trailing_whitespace=made.trailing_whitespace)  # type: ignore[union-attr]
        leading = made.leading_lines if isinstance(made, cst.SimpleStatementLine) else ()
        before, own, behind = lines
        assert own is not None
        parts: list[cst.BaseStatement] = []
        if before is not None:
            parts.append(before.with_changes(leading_lines=leading))
            leading = ()
        parts.append(under([own], leading))
        if behind is not None:
            parts.append(behind)
        return (
            cst.IndentedBlock(parts, indent=indent)
            if isinstance(made, cst.SimpleStatementSuite)
            else (cst.FlattenSentinel(parts))
        )

    return change


def _ended(smalls: Sequence[cst.BaseSmallStatement]) -> list[cst.BaseSmallStatement]:
    return [*smalls[:-1], smalls[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]


def decorate(plan: FixPlan, source: Source, mode: str = "no_grad") -> tuple[Edit, ...] | None:
    """`@torch.no_grad()` on a function."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.FunctionDef) if region is not None else None
    if region is None or node is None:
        return None
    added = cst.Decorator(expression(f"{torch_name(source)}.{mode}()"))
    region.change(node, lambda made: made.with_changes(decorators=[*made.decorators, added]))  # type: ignore[attr-defined]
    return with_torch(source, region.edits())


def under_inference(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The function or the statement under `torch.inference_mode()`."""
    return decorate(plan, source, "inference_mode") or under_mode(plan, source, "inference_mode")


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


def record(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The statements of a `with torch.no_grad():` without it; a function without the decorator of that name."""
    region = Region.of(source, [plan.span])
    if region is None:
        return None
    block = region.find(plan.span, cst.With)
    if block is not None:
        body = block.body
        if (
            len(block.items) != 1
            or block.items[0].asname is not None
            or not isinstance(body, cst.IndentedBlock)
        ):
            return None
        if body.footer:  # comments below, which would lose their place
            return None

        def unpacked(made: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
            made = cst.ensure_type(made, cst.With)
            first, *rest = made.body.body
            comment = cst.ensure_type(made.body, cst.IndentedBlock).header.comment
            noted = [cst.EmptyLine(comment=comment)] if comment is not None else []
            leading = (*made.leading_lines, *noted, *getattr(first, "leading_lines", ()))
            return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *rest])

        region.change(block, unpacked)
        return region.edits()
    function = region.find(plan.span, cst.FunctionDef)
    if function is None:
        return None
    off = [each for each in function.decorators if _switches_off(each.decorator)]
    for each in off:
        region.change(each, lambda _: cst.RemoveFromParent())
    return region.edits() if off else None


def _switches_off(decorator: cst.BaseExpression) -> bool:
    name = text_of(decorator.func if isinstance(decorator, cst.Call) else decorator)
    return name.rpartition(".")[2] in ("no_grad", "inference_mode")


def _line(region: Region, statement: cst.CSTNode) -> cst.CSTNode:
    if isinstance(statement, cst.BaseSmallStatement):
        parent = region.parent(statement)
        assert parent is not None
        return parent
    return statement
