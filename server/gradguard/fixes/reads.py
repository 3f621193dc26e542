"""Host reads taken off the step: summed on the device, guarded, logged lazily."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, Span
from gradguard.fixes.edit import Edit
from gradguard.fixes.graph import detached
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, parenthesized, text_of
from gradguard.source.loops import guardable, read_behind
from gradguard.source.text import Source

EVERY = 100
"""Steps between two reads of a guarded statement."""


def item_after_loop(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`total += loss.item()` on the device, with `total = total.item()` once behind the loop.

    `losses.append(loss.item())` likewise, with one `torch.stack(losses).tolist()`.
    """
    found = read_behind(source, plan.span)
    if found is None:
        return None
    loop, item = found
    region = Region.of(source, [source.span(loop)])
    whole = region.find(source.span(loop), cst.BaseCompoundStatement) if region is not None else None
    statement = region.find(plan.span, cst.BaseSmallStatement) if region is not None else None
    read = region.find(source.span(item), cst.Call) if region is not None else None
    if region is None or statement is None or whole is None or read is None:
        return None
    if isinstance(statement, cst.AugAssign):
        name = text_of(statement.target)
        behind = f"{name} = {name}.item()"
    else:
        call = cst.ensure_type(cst.ensure_type(statement, cst.Expr).value, cst.Call)
        name = text_of(cst.ensure_type(call.func, cst.Attribute).value)
        behind = f"{name} = {torch_name(source)}.stack({name}).tolist()"
    region.replace(read, detached(cst.ensure_type(read.func, cst.Attribute).value))
    region.after(whole, behind)
    return with_torch(source, region.edits())


def clamp(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`max(1, num)` as `num.clamp(min=1)`. data: `keyword`, and `bound` as `ast.unparse` spells it."""
    data = dict(plan.data)
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None:
        return None
    parts: list[cst.BaseExpression] = [arg.value for arg in call.args]
    if len(parts) == 1 and isinstance(parts[0], (cst.List, cst.Tuple)):
        parts = [element.value for element in parts[0].elements]
    rest = [part for part in parts if not isinstance(part, (cst.Integer, cst.Float, cst.UnaryOperation))]
    if len(rest) != 1:
        return None
    region.replace(
        call, expression(f"{text_of(parenthesized(rest[0]))}.clamp({data['keyword']}={data['bound']})")
    )
    return region.edits()


def guard_read(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The statement, and those that need what it binds, under `if step % 100 == 0:`."""
    found = guardable(source, plan.span)
    if found is None:
        return None
    step, statements = found
    spans = [source.span(statements[0]), source.span(statements[-1])]
    region = Region.of(source, spans)
    if region is None:
        return None
    nodes = [_line(region, span) for span in spans]
    block = region.parent(nodes[0]) if nodes[0] is not None else None
    body = list(getattr(block, "body", ()))
    if block is None or nodes[0] not in body or nodes[1] not in body:
        return None
    first, last = body.index(nodes[0]), body.index(nodes[1])
    leading = getattr(body[first], "leading_lines", ())
    test = expression(f"{step} % {EVERY} == 0")

    def wrap(made: cst.CSTNode) -> cst.CSTNode:
        parts = list(made.body)  # type: ignore[attr-defined]
        inner = parts[first : last + 1]
        inner[0] = inner[0].with_changes(leading_lines=())
        guarded = cst.If(test, cst.IndentedBlock(inner, indent=region.indent), leading_lines=leading)
        return made.with_changes(body=[*parts[:first], guarded, *parts[last + 1 :]])

    region.change(block, wrap)
    return region.edits()


def log_lazily(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`log.debug(f"{loss}")` as `log.debug("%s", loss)`: the text is made only when it is logged."""
    region = Region.of(source, [plan.span])
    statement = region.find(plan.span, cst.Expr) if region is not None else None
    call = statement.value if statement is not None else None
    text = call.args[0].value if isinstance(call, cst.Call) and call.args else None
    if region is None or not isinstance(call, cst.Call) or not isinstance(text, cst.FormattedString):
        return None
    pattern, values = "", []
    for part in text.parts:
        if isinstance(part, cst.FormattedStringText):
            pattern += part.value.replace("{{", "{").replace("}}", "}").replace("%", "%%")
            continue
        value = cst.ensure_type(part, cst.FormattedStringExpression)
        pattern += f"%{_specification(value) or 's'}"
        values.append(cst.Arg(_argument(value.expression)))
    quote = text.start[1:]
    format_ = expression(f"{quote}{pattern}{quote}")
    region.replace(call, call.with_changes(args=[cst.Arg(format_), *values]))
    return region.edits()


def _specification(part: cst.FormattedStringExpression) -> str:
    return "".join(cst.ensure_type(each, cst.FormattedStringText).value for each in part.format_spec or ())


def _argument(value: cst.BaseExpression) -> cst.BaseExpression:
    """What stands between braces, as an argument: `a, b` is one value."""
    return parenthesized(value) if isinstance(value, (cst.Tuple, cst.Yield)) else value


def _line(region: Region, span: Span) -> cst.CSTNode | None:
    found = region.find(span, cst.BaseSmallStatement)
    return region.parent(found) if found is not None else None
