"""What a custom Function keeps on its `ctx`, kept by `save_for_backward`."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.region import Region, Small
from gradguard.fixes.syntax import expression
from gradguard.source.text import Source


def save_for_backward(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`ctx.y = y` at the span as the call `code`, and `name` unpacked in backward where `ctx.y` was read.

    data: `uses`, the reads; `first`, the statement to unpack in front of; or `call` and `unpacked`, the statements that
    save and unpack others already; `context`, as backward calls it.
    """
    data = dict(plan.data)
    spans = {key: spans_of(data.get(key, "")) for key in ("uses", "first", "call", "unpacked")}
    region = Region.of(source, [plan.span, *(span for group in spans.values() for span in group)])
    if region is None:
        return None
    name = data["name"]
    statement = region.find(plan.span, Small)
    uses = [region.find(span, cst.Attribute) for span in spans["uses"]]
    if statement is None or None in uses:
        return None
    for use in uses:
        assert use is not None
        region.replace(use, cst.Name(name, lpar=use.lpar, rpar=use.rpar))
    unpack = f"({name},) = {data['context']}.saved_tensors"
    if spans["first"]:
        first = region.find(spans["first"][0], Small) or region.find(spans["first"][0], cst.BaseStatement)
        if first is None:
            return None
        region.replace(statement, cst.Expr(expression(data["code"])))
        region.before(first, unpack)
        return region.edits()
    call, unpacked = (
        region.find(spans[key][0], kind) for key, kind in (("call", cst.Expr), ("unpacked", cst.Assign))
    )
    if (
        not isinstance(call, cst.Expr)
        or not isinstance(call.value, cst.Call)
        or not isinstance(unpacked, cst.Assign)
    ):
        return None
    line, targets = region.parent(statement), unpacked.targets[0].target
    if (
        not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
        or not isinstance(targets, cst.Tuple)
    ):
        return None
    region.replace(call.value, call.value.with_changes(args=[*call.value.args, cst.Arg(cst.Name(name))]))
    region.replace(targets, targets.with_changes(elements=_one_more(targets, name)))
    region.change(line, lambda _: cst.RemoveFromParent())
    return region.edits()


def _one_more(targets: cst.Tuple, name: str) -> list[cst.BaseElement]:
    """The names of `a, b`, and another; `(a,)` loses its lonely comma."""
    *others, last = targets.elements
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [*others, last.with_changes(comma=comma), cst.Element(cst.Name(name))]
