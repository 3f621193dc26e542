"""Writes to parts of a tensor made into new tensors: masks filled, values put at indices."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import hidden, torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, parenthesized, text_of
from gradguard.fixes.writes import assignment
from gradguard.source.text import Source


def masked_write(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`y[mask] = 0` as `masked_fill`, `y[mask] = z[mask]` as `torch.where`. data: `how`, `name`."""
    found = _written(plan, source)
    if found is None:
        return None
    region, node, (index, *_) = found
    data = dict(plan.data)
    name = data["name"]
    made = f"{name}.masked_fill({index}, {text_of(node.value)})"
    if data.get("how") == "where":
        if not isinstance(node.value, cst.Subscript):
            return None
        value = node.value.value
        made = f"{torch_name(source)}.where({index}, {text_of(value)}, {name})"
        if hidden(source):
            made = f"{text_of(parenthesized(value))}.where({index}, {name})"
    region.replace(node, assignment(name, expression(made)))
    return with_torch(source, region.edits())


def index_put(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`y[i] = v` as `y = y.index_put((i,), v)`. data: `name`; `number` where `v` is one."""
    found = _written(plan, source)
    if found is None:
        return None
    region, node, parts = found
    data = dict(plan.data)
    name = data["name"]
    indices = f"({', '.join(parts)})" if len(parts) > 1 else f"({parts[0]},)"
    value = text_of(node.value)
    if data.get("number"):
        value = f"{name}.new_tensor({value})"
    region.replace(node, assignment(name, expression(f"{name}.index_put({indices}, {value})")))
    return region.edits()


def _written(plan: FixPlan, source: Source) -> tuple[Region, cst.Assign, list[str]] | None:
    """The assignment to a part of the tensor that the plan names, and its indices."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.Assign) if region is not None else None
    if region is None or node is None or len(node.targets) != 1:
        return None
    target = node.targets[0].target
    if not isinstance(target, cst.Subscript) or text_of(target.value) != dict(plan.data).get("name"):
        return None
    parts = [part.slice for part in target.slice]
    if not all(isinstance(part, cst.Index) for part in parts):
        return None
    return region, node, [text_of(cst.ensure_type(part, cst.Index).value) for part in parts]
