"""Graphs kept too long or not at all: values detached, backwards summed, flags dropped, stacks instead of copies."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import (
    argument,
    expression,
    method,
    parenthesized,
    text_of,
    without_argument,
)
from gradguard.source.text import Source


def detach(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The value at the span, and those that `also` names, detached; of the tuple `name` each element."""
    data = dict(plan.data)
    spans = [plan.span, *spans_of(data.get("also", ""))]
    region = Region.of(source, spans)
    nodes = [region.find(span, cst.BaseExpression) for span in spans] if region is not None else []
    if region is None:
        return None
    for node in nodes:
        if node is None:
            return None
        many = "many" in data and text_of(node) == data.get("name")
        region.replace(node, detached(node, many=many))
    return region.edits()


def detached(node: cst.BaseExpression, *, many: bool = False) -> cst.BaseExpression:
    """`node.detach()`; before a `.clone()` that ends it; of a tuple, of each element."""
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "detach"
    ):
        return node
    if many:
        return expression(f"tuple(each.detach() for each in {text_of(node)})")
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "clone"
    ):
        return node.with_changes(func=node.func.with_changes(value=method(node.func.value, "detach")))
    return method(node, "detach")


def detach_after(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`h = h.detach()` behind the statement around the span (the backward). data: `code`, a statement a line."""
    data = dict(plan.data)
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.CSTNode) if region is not None else None
    statement = (
        region.around(node, cst.BaseSmallStatement) if region is not None and node is not None else None
    )
    code = data.get("code", "")
    if region is None or statement is None or not code:
        return None
    region.after(statement, *code.split("\n"))
    return region.edits()


def sum_losses(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`for loss in losses: loss.backward()` at the span as `sum(losses).backward()`."""
    region = Region.of(source, [plan.span])
    loop = region.find(plan.span, cst.For) if region is not None else None
    if region is None or loop is None:
        return None
    over = text_of(loop.iter)
    if isinstance(loop.iter, cst.Tuple) and not loop.iter.lpar:
        over = f"({over})"
    made = cst.parse_statement(f"sum({over}).backward()")
    region.replace(
        loop, cst.ensure_type(made, cst.SimpleStatementLine).with_changes(leading_lines=loop.leading_lines)
    )
    return region.edits()


def sum_backwards(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`a.backward()` at the span and `b.backward()` at `second` as `(a + b).backward()`."""
    spans = [plan.span, *spans_of(dict(plan.data).get("second", ""))]
    region = Region.of(source, spans)
    calls = [region.find(span, cst.Call) for span in spans] if region is not None else []
    if region is None or len(calls) != 2:
        return None
    roots: list[str] = []
    for call in calls:
        func = call.func if call is not None else None
        if (
            call is None
            or not isinstance(func, cst.Attribute)
            or not isinstance(region.parent(call), cst.Expr)
        ):
            return None
        rest = without_argument(call, "retain_graph") if argument(call, "retain_graph") is not None else call
        if rest.args or func.attr.value != "backward":
            return None
        roots.append(text_of(parenthesized(func.value)))
    first, second = calls
    assert first is not None
    assert second is not None
    line = region.parent(region.parent(first) or first)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    region.replace(second, expression(f"({roots[0]} + {roots[1]}).backward()"))
    region.change(line, lambda _: cst.RemoveFromParent())
    return region.edits()


def drop_retain_graph(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`backward(retain_graph=True)` without the flag. data: `position`, where it is given without its name."""
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None:
        return None
    position = dict(plan.data).get("position")
    flag = argument(call, "retain_graph") if position is None else call.args[int(position)]
    if flag is None:
        return None
    if position is not None and any(arg.keyword is None for arg in call.args[int(position) + 1 :]):
        region.replace(flag.value, cst.Name("False"))
    else:
        region.replace(call, without_argument(call, flag))
    return region.edits()


def set_flag(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The call at the span with `flag=True`, which it may have had with another value. data: `flag`."""
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    flag = dict(plan.data).get("flag", "")
    if region is None or call is None or not flag:
        return None
    given = argument(call, flag)
    if given is not None:
        region.replace(given.value, cst.Name("True"))
    else:
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        added = cst.Arg(cst.Name("True"), keyword=cst.Name(flag), equal=equal)
        args = [*call.args]
        if args and isinstance(args[-1].comma, cst.MaybeSentinel):
            comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            args[-1] = args[-1].with_changes(comma=comma)
        region.replace(call, call.with_changes(args=[*args, added]))
    return region.edits()


def stack(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`torch.tensor(losses)` as `torch.stack(losses)`; `max(...)` of tensors as `torch.stack([...]).max()`.

    data: `how`, `max` or `min`, for the second.
    """
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None or not call.args or call.args[0].star:
        return None
    how = dict(plan.data).get("how", "")
    first = call.args[0].value
    if how:
        if any(arg.keyword is not None for arg in call.args):
            return None
        made = f"{torch_name(source)}.stack({_listed(call)}).{how}()"
    elif isinstance(first, (cst.List, cst.ListComp, cst.Name, cst.Attribute)):
        made = f"{torch_name(source)}.stack({text_of(first)})"
    else:
        return None
    region.replace(call, expression(made))
    return with_torch(source, region.edits())


def _listed(call: cst.Call) -> str:
    if len(call.args) > 1:
        return "[" + ", ".join(text_of(arg.value) for arg in call.args) + "]"
    value = call.args[0].value
    if isinstance(value, cst.GeneratorExp):
        return f"[{text_of(value.with_changes(lpar=(), rpar=()))}]"
    return text_of(value) if isinstance(value, (cst.List, cst.ListComp)) else f"list({text_of(value)})"


def keep_graph(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """A value without the call or attribute that takes it out of the graph: `.item()`, `.detach()`, `.data`."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.BaseExpression) if region is not None else None
    if region is None or node is None:
        return None
    inner: cst.BaseExpression | None = None
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if not node.args and node.func.attr.value in ("item", "detach"):
            inner = node.func.value
        elif len(node.args) == 1 and text_of(node.func.value) == "math" and node.func.attr.value in _MATH:
            inner = cst.Call(cst.Attribute(parenthesized(node.args[0].value), node.func.attr))
    elif isinstance(node, cst.Attribute) and node.attr.value == "data":
        inner = node.value
    if inner is None:
        return None
    region.replace(node, inner)
    return region.edits()


_MATH = frozenset({"exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "atan", "log1p", "expm1"})
