"""New tensors made into in-place writes, for memory: the way back from `writes`. Offered only where proven."""

from __future__ import annotations

import libcst as cst

from gradguard.findings import FixPlan
from gradguard.fixes.edit import Edit
from gradguard.fixes.known import known
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import argument, expression, text_of
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.source.text import Source

_AUGMENTED: dict[type[cst.BaseBinaryOp], type[cst.BaseAugOp]] = {
    cst.Add: cst.AddAssign,
    cst.Subtract: cst.SubtractAssign,
    cst.Multiply: cst.MultiplyAssign,
    cst.Divide: cst.DivideAssign,
    cst.Power: cst.PowerAssign,
}


def make_in_place(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`y = y + x` as `y += x`, `y = y.exp()` as `y.exp_()`, `y = F.relu(y)` with `inplace=True`."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.Assign) if region is not None else None
    new = _in_place(node, known(plan)) if node is not None else None
    if region is None or node is None or new is None:
        return None
    region.replace(node, new)
    return region.edits()


def add_flag(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`nn.ReLU()` with `inplace=True`."""
    region = Region.of(source, [plan.span])
    call = region.find(plan.span, cst.Call) if region is not None else None
    if region is None or call is None or argument(call, "inplace") is not None:
        return None
    region.replace(call, flagged(call))
    return region.edits()


def flagged(call: cst.Call) -> cst.Call:
    """A call with `inplace=True` at its end."""
    flag = cst.ensure_type(expression("f(inplace=True)"), cst.Call).args[0]
    args = list(call.args)
    if args:
        last = args[-1]
        flag = flag.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        args[-1] = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*args, flag])


def _in_place(node: cst.Assign, ops: Table) -> cst.BaseSmallStatement | None:
    if len(node.targets) != 1:
        return None
    target, value = node.targets[0].target, node.value
    name = text_of(target)
    if isinstance(value, cst.BinaryOperation):
        return _operator(node, name, value)
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return None
    func = value.func
    if text_of(func.value) == name:
        base = func.attr.value
        if base in table.UNLIKE or base.endswith("_") or ops.op(f"Tensor.{base}_") is None:
            return None
        made = value.with_changes(func=func.with_changes(attr=func.attr.with_changes(value=f"{base}_")))
        return cst.Expr(made)
    if not value.args or value.args[0].keyword is not None or text_of(value.args[0].value) != name:
        return None
    op = ops.op(f"torch.nn.functional.{func.attr.value}")
    takes_flag = op is not None and any(p.name == "inplace" for form in op.forms for p in form.params)
    if takes_flag and text_of(func.value) in ("F", "nn.functional", "torch.nn.functional"):
        return node.with_changes(value=flagged(value)) if argument(value, "inplace") is None else None
    if text_of(func.value) == "torch" and ops.op(f"torch.{func.attr.value}_") is not None:
        if func.attr.value in table.UNLIKE:
            return None
        made = value.with_changes(func=func.with_changes(attr=cst.Name(f"{func.attr.value}_")))
        return cst.Expr(made)
    return None


def _operator(node: cst.Assign, name: str, value: cst.BinaryOperation) -> cst.AugAssign | None:
    made = _AUGMENTED.get(type(value.operator))
    if made is None or value.lpar:
        return None
    right = value.right
    if text_of(value.left) != name:
        if text_of(value.right) != name or not isinstance(value.operator, (cst.Add, cst.Multiply)):
            return None
        right = value.left
    target = node.targets[0].target
    if not isinstance(target, (cst.Name, cst.Attribute)):
        return None
    return cst.AugAssign(target, made(), right)
