"""Tensors filled row by row in a loop, made of a list of rows instead."""

from __future__ import annotations

import ast

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, text_of
from gradguard.source.loops import loop_around
from gradguard.source.text import Source


def stack_rows(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`out[i] = row` in a loop over `range` as `out.append(row)`, with `torch.stack(out)` behind the loop.

    data: `name`; `made`, where the tensor is made, just before the loop.
    """
    data = dict(plan.data)
    name, made = data.get("name", ""), spans_of(data.get("made", ""))
    loop = loop_around(source, plan.span)
    if not isinstance(loop, ast.For) or len(made) != 1:
        return None
    where = source.span(loop)
    region = Region.of(source, [*made, where])
    if region is None:
        return None
    start = region.find(made[0], cst.Assign)
    write = region.find(plan.span, cst.Assign)
    whole = region.find(where, cst.For)
    if start is None or write is None or whole is None:
        return None
    region.change(start, lambda node: node.with_changes(value=cst.List([])))
    region.replace(write, cst.Expr(expression(f"{name}.append({text_of(write.value)})")))
    region.after(whole, f"{name} = {torch_name(source)}.stack({name})")
    return with_torch(source, region.edits())
