"""What each pass copies to the device, made there or copied once."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, text_of
from gradguard.source.text import Source


def make_on_device(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`torch.tensor(0.5, device=device)` filled there; `torch.zeros(3).to(device)` with the device among its arguments."""
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None or not isinstance(call.func, cst.Attribute):
        return None
    made, device = call, None
    if isinstance(call.func.value, cst.Call):
        made = call.func.value
        device = call.args[0].value if call.args else expression('"cuda"')
    function = cst.ensure_type(made.func, cst.Attribute)
    if function.attr.value in ("tensor", "as_tensor"):
        filled = _filled(made, function)
        if filled is None:
            return None
        made = filled
    if device is not None:
        made = _with_device(made, device)
    region.replace(call, made)
    return region.edits()


def _filled(call: cst.Call, function: cst.Attribute) -> cst.Call | None:
    """`torch.full((), 0.5, ...)` for `torch.tensor(0.5, ...)`, `torch.full((1,), 0.5, ...)` for `torch.tensor([0.5], ...)`."""
    first = call.args[0]
    number, size = first.value, "()"
    if isinstance(number, (cst.List, cst.Tuple)):
        if len(number.elements) != 1:
            return None
        number, size = number.elements[0].value, "(1,)"
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = [cst.Arg(expression(size), comma=comma), first.with_changes(value=number), *call.args[1:]]
    return call.with_changes(func=function.with_changes(attr=cst.Name("full")), args=args)


def _with_device(call: cst.Call, device: cst.BaseExpression) -> cst.Call:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = [*call.args]
    if args and isinstance(args[-1].comma, cst.MaybeSentinel):
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(args=[*args, cst.Arg(device, keyword=cst.Name("device"), equal=equal)])


def copy_before_loop(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`x = x.to(device)` before the loop at the span, and `x` where the loop has copied it. data: `name`, `uses`."""
    data = dict(plan.data)
    region = Region.of(source, [plan.span])
    loop = region.find(plan.span, cst.BaseCompoundStatement) if region is not None else None
    if region is None or loop is None:
        return None
    uses = [region.find(span, cst.Call) for span in spans_of(data["uses"])]
    code = ""
    for use in uses:
        if use is None:
            return None
        code = f"{data['name']} = {text_of(use.with_changes(lpar=(), rpar=()))}"
        region.replace(use, cst.Name(data["name"], lpar=use.lpar, rpar=use.rpar))
    region.before(loop, code)
    return region.edits()
