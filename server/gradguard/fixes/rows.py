"""Tensors filled row by row in a loop, made of a list of rows instead."""

from __future__ import annotations

import ast

import libcst as cst

from gradguard.findings import FixPlan
from gradguard.fixes.clones import spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.reads import innermost_loop
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, text_of
from gradguard.source.text import Source

_EMPTY = ("zeros", "empty", "ones", "full", "zeros_like", "empty_like")


def stack_rows(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`out[i] = row` in a loop over `range` as `out.append(row)`, with `torch.stack(out)` behind the loop.

    data: `name`; `made`, where the tensor is made, just before the loop. None where the loop's counter is not
    the index, or the tensor is used otherwise in the loop than by reading a row of its own.
    """
    data = dict(plan.data)
    name, made = data.get("name", ""), spans_of(data.get("made", ""))
    loop = innermost_loop(source, plan.span.line)
    if loop is None or len(made) != 1 or not isinstance(loop, ast.For) or not _counts(loop, name):
        return None
    where = source.span(loop)
    region = Region.of(source, [*made, where])
    if region is None:
        return None
    start = region.find(made[0], cst.Assign)
    write = region.find(plan.span, cst.Assign)
    whole = region.find(where, cst.For)
    if start is None or write is None or whole is None or not _is_new(start.value):
        return None
    region.change(start, lambda node: node.with_changes(value=cst.List([])))
    region.replace(write, cst.Expr(expression(f"{name}.append({text_of(write.value)})")))
    region.after(whole, f"{name} = {torch_name(source)}.stack({name})")
    return with_torch(source, region.edits())


def _is_new(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and text_of(value.func).rpartition(".")[2] in _EMPTY


def _counts(loop: ast.For, name: str) -> bool:
    """Whether the loop counts from zero and writes row by row, in order, once on every pass."""
    head = ast.unparse(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
    arguments = len(loop.iter.args) if isinstance(loop.iter, ast.Call) else 0
    target = loop.target
    if head == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif head != "range":
        return False
    if not isinstance(target, ast.Name) or arguments != 1 or loop.orelse:
        return False
    writes = [
        one
        for one in loop.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == f"{name}[{target.id}]"
    ]
    uses = [part for part in ast.walk(loop) if isinstance(part, ast.Name) and part.id == name]
    reads = [
        part
        for part in ast.walk(loop)
        if isinstance(part, ast.Subscript)
        and ast.unparse(part.value) == name
        and isinstance(part.ctx, ast.Load)
    ]
    leaves = any(isinstance(part, (ast.Break, ast.Continue)) for part in ast.walk(loop))
    return len(writes) == 1 and len(uses) == 1 + len(reads) and not leaves
