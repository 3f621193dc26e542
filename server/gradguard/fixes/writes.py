"""In-place writes made into new tensors: operators, methods, `inplace=True`, `out=`, index writes."""

from __future__ import annotations

import ast

import libcst as cst

from gradguard.findings import FixPlan, Span, spans_of
from gradguard.fixes.edit import Edit
from gradguard.fixes.known import known
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import argument, expression, parenthesized, text_of, without_argument
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.source.text import Source

_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.MatrixMultiplyAssign: cst.MatrixMultiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
}


def out_of_place(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`y += x`, `y.add_(x)`, `F.relu(y, inplace=True)`, `torch.add(a, b, out=y)` with a new tensor in `y`.

    data: `name`, the place that is bound anew (empty for a temporary); `form`, `clone` where only an in-place
    op on a clone gives the same numbers.
    """
    data = dict(plan.data)
    name, clone = data.get("name", ""), data.get("form") == "clone"
    region = Region.of(source, [plan.span])
    if region is None:
        return None
    augmented = region.find(plan.span, cst.AugAssign)
    if augmented is not None:
        if clone or text_of(augmented.target) != name:
            return _clone_first(region, augmented, name)
        region.replace(augmented, spelled_out(augmented))
        return region.edits()
    call = region.find(plan.span, cst.Call)
    if call is None:
        return None
    call = _whole_chain(region, call)
    statement = region.around(call, cst.BaseSmallStatement)
    if statement is None:
        return None
    if name and _reads_what_it_wrote(call, name):
        return _clone_first(region, statement, name)
    new = None if clone else functional(call, known(plan))
    if new is None:
        return _cloned_call(region, call, statement, name)
    parent = region.parent(call)
    if not name or (isinstance(parent, cst.Return) and _ends_with(source, plan.span, name)):
        region.replace(call, new)
    elif isinstance(parent, cst.Expr):
        region.replace(parent, assignment(name, new))
    elif isinstance(parent, cst.Assign):
        region.replace(call, new)
        if not any(text_of(target.target) == name for target in parent.targets):
            first = cst.AssignTarget(_target(name))
            region.change(parent, lambda made: made.with_changes(targets=[first, *made.targets]))  # type: ignore[attr-defined]
    else:
        return _clone_first(region, statement, name)
    return region.edits()


def _ends_with(source: Source, span: Span, name: str) -> bool:
    """Whether nobody looks at a name of the running function any more once its `return` has a value."""
    functions = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _holds(node, span.line)
    ]
    inner = max(functions, key=lambda node: node.lineno, default=None)
    if inner is None or not name.isidentifier():
        return False
    parts = list(ast.walk(inner))
    declared = {name for one in parts if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    finally_ = [one for one in parts if getattr(one, "finalbody", None) and _holds(one, span.line)]
    return name not in declared and not finally_


def _holds(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", 0)
    return first <= line <= (getattr(node, "end_lineno", None) or first)


def _whole_chain(region: Region, call: cst.Call) -> cst.Call:
    """The last of the in-place methods that are called one on the other."""
    while True:
        func = region.parent(call)
        outer = region.parent(func) if isinstance(func, cst.Attribute) and func.value is call else None
        if not isinstance(outer, cst.Call) or not _writes(outer):
            return call
        call = outer


def _reads_what_it_wrote(call: cst.Call, name: str) -> bool:
    """Whether `y.mul_(2).add_(y)` hands to a later write what an earlier one made of `y`, as far as can be seen."""
    while isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        if not _writes(call.func.value):
            return False
        if any(_may_reach(arg.value, name) for arg in call.args):
            return True
        call = call.func.value
    return False


def _may_reach(node: cst.CSTNode, name: str) -> bool:
    """Whether an expression names a tensor or calls what may: anything but functions of torch."""
    if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and text_of(node) == name:
        return True
    if isinstance(node, cst.Call):
        func = node.func
        owner = text_of(func.value) if isinstance(func, cst.Attribute) else ""
        if owner not in _FUNCTIONS:
            return True
    return any(_may_reach(child, name) for child in node.children)


def _cloned_call(
    region: Region, call: cst.Call, statement: cst.BaseSmallStatement, name: str
) -> tuple[Edit, ...] | None:
    """`y = y.clone().zero_()` where it stands alone, else a clone before the statement."""
    if isinstance(region.parent(call), cst.Expr) and method_root(call) is not None:
        root = method_root(call)
        if name and root is not None and text_of(root) == name:
            made = call.deep_replace(root, expression(f"{name}.clone()"))
            region.replace(statement, assignment(name, made))
            return region.edits()
    return _clone_first(region, statement, name)


def clone_before(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`y = y.clone()` before the statement that writes `y`. data: `name`."""
    region = Region.of(source, [plan.span])
    if region is None:
        return None
    statement = region.find(plan.span, cst.BaseSmallStatement)
    inner = region.find(plan.span, cst.BaseExpression)
    if statement is None and inner is not None:
        statement = region.around(inner, cst.BaseSmallStatement)
    return _clone_first(region, statement, dict(plan.data).get("name", "")) if statement is not None else None


def drop_inplace(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`nn.ReLU(inplace=True)` without the flag, and those that `also` names (`line:column:line:column;...`)."""
    spans = [plan.span, *spans_of(dict(plan.data).get("also", ""))]
    region = Region.of(source, spans)
    if region is None:
        return None
    for span in spans:
        call = region.find(span, cst.Call)
        new = without_flag(call, known(plan)) if call is not None else None
        if call is None or new is None:
            return None
        region.replace(call, new)
    return region.edits()


def functional(call: cst.Call, ops: Table) -> cst.Call | None:
    """The call that gives a new tensor instead of writing one; None where torch has none that is alike."""
    if argument(call, "out") is not None:
        return without_argument(call, "out")
    flagged = without_flag(call, ops)
    if flagged is not None:
        return flagged
    func = call.func
    if not isinstance(func, (cst.Attribute, cst.Name)):
        return None
    last = func.attr if isinstance(func, cst.Attribute) else func
    if not last.value.endswith("_") or last.value.startswith("_"):
        return None
    base = last.value[:-1]
    if base in table.UNLIKE or not isinstance(func, cst.Attribute) or not _has_form(base, func, call, ops):
        return None
    made = func.with_changes(attr=last.with_changes(value=base))
    if isinstance(func.value, cst.Call) and _writes(func.value):
        inner = functional(func.value, ops)
        if inner is None:
            return None
        made = made.with_changes(value=inner)
    return call.with_changes(func=made)


def _has_form(base: str, func: cst.Attribute, call: cst.Call, ops: Table) -> bool:
    """Whether torch has a form of that name without the underscore, as a method or where the function is.

    What is given by position must mean the same to both: the third argument of `F.elu_` is no flag.
    """
    owner = _FUNCTIONS.get(text_of(func.value), "Tensor.")
    plain, written = ops.op(f"{owner}{base}"), ops.op(f"{owner}{base}_")
    if plain is None or written is None:
        return plain is not None
    count = sum(arg.keyword is None for arg in call.args) + (owner == "Tensor.")
    places = [{tuple(p.name for p in form.params[1:count]) for form in op.forms} for op in (plain, written)]
    return bool(places[0] & places[1])


_FUNCTIONS = {
    "torch": "torch.",
    "F": "torch.nn.functional.",
    "torch.nn.functional": "torch.nn.functional.",
}
"""How files name the modules of torch's functions, and what the table calls them."""


def _writes(call: cst.Call) -> bool:
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value.endswith("_")
        and not func.attr.value.startswith("_")
    )


def without_flag(call: cst.Call, ops: Table) -> cst.Call | None:
    """A call without its `inplace=True`; None where it has none."""
    if argument(call, "inplace") is not None:
        return without_argument(call, "inplace")
    last = call.args[-1] if call.args else None
    if last is not None and last.keyword is None and not last.star and text_of(last.value) == "True":
        name = text_of(call.func).rpartition(".")[2]
        if _flag_index(name, ops) == len(call.args) - 1:
            return without_argument(call, last)
    return None


def _flag_index(name: str, ops: Table) -> int | None:
    """Position of the parameter `inplace` of a module or a function of `torch.nn`."""
    row = ops.module(f"torch.nn.{name}")
    if row is not None:
        return next((i for i, param in enumerate(row.init) if param.name == "inplace"), None)
    op = ops.op(f"torch.nn.functional.{name}")
    for form in op.forms if op is not None else ():
        for index, param in enumerate(form.params):
            if param.name == "inplace":
                return index
    return None


def method_root(call: cst.Call) -> cst.BaseExpression | None:
    """`y` of `y.mul_(2).add_(1)`; None where the call is no method."""
    root: cst.BaseExpression = call
    while isinstance(root, cst.Call) and _writes(root):
        assert isinstance(root.func, cst.Attribute)
        root = root.func.value
    return root if root is not call else None


def spelled_out(node: cst.AugAssign) -> cst.Assign:
    """`y += x` as `y = y + x`."""
    operator = _OPERATORS[type(node.operator)]()
    target = cst.AssignTarget(
        node.target,
        whitespace_before_equal=getattr(node.operator, "whitespace_before"),  # noqa: B009
        whitespace_after_equal=getattr(node.operator, "whitespace_after"),  # noqa: B009
    )
    left = expression(text_of(node.target))
    return cst.Assign(
        [target],
        cst.BinaryOperation(left, operator, parenthesized(node.value)),
    )


def assignment(name: str, value: cst.BaseExpression) -> cst.Assign:
    """`name = value`."""
    return cst.Assign([cst.AssignTarget(_target(name))], value)


def _target(name: str) -> cst.BaseAssignTargetExpression:
    made = expression(name)
    assert isinstance(made, (cst.Name, cst.Attribute, cst.Subscript))
    return made


def _clone_first(region: Region, statement: cst.BaseSmallStatement, name: str) -> tuple[Edit, ...] | None:
    if not name or not isinstance(expression(name), (cst.Name, cst.Attribute, cst.Subscript)):
        return None
    region.before(statement, f"{name} = {name}.clone()")
    return region.edits()


def insert_before(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """A simple statement, `code`, before the statement around the span."""
    region = Region.of(source, [plan.span])
    node = region.find(plan.span, cst.CSTNode) if region is not None else None
    statement = (
        region.around(node, cst.BaseSmallStatement) if region is not None and node is not None else None
    )
    code = dict(plan.data).get("code", "")
    if region is None or statement is None or not code:
        return None
    region.before(statement, code)
    return region.edits()


def return_gradient(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """A hook that writes its gradient returns a new one instead. data: `name`, the hook's argument."""
    region = Region.of(source, [plan.span], whole=True)
    node = region.find(plan.span, cst.CSTNode) if region is not None else None
    name = dict(plan.data).get("name", "")
    if region is None or node is None or not name.isidentifier():
        return None
    if isinstance(node, cst.AugAssign) or region.find(plan.span, cst.AugAssign) is not None:
        augmented = region.find(plan.span, cst.AugAssign)
        assert augmented is not None
        region.replace(augmented, spelled_out(augmented))
    else:
        call = region.find(plan.span, cst.Call)
        new = functional(call, known(plan)) if call is not None else None
        if call is None or new is None:
            return None
        parent = region.parent(call)
        region.replace(parent, assignment(name, new)) if isinstance(parent, cst.Expr) else region.replace(
            call, new
        )
    function = region.around(node, cst.FunctionDef)
    if function is not None and not any(True for _ in region.within(function, cst.Return)):
        region.change(function.body, lambda body: _returning(body, name))
    return region.edits()


def _returning(body: cst.CSTNode, name: str) -> cst.CSTNode:
    if isinstance(body, cst.IndentedBlock):
        line = cst.SimpleStatementLine([cst.Return(cst.Name(name))])
        return body.with_changes(body=[*body.body, line])
    suite = cst.ensure_type(body, cst.SimpleStatementSuite)
    return suite.with_changes(body=[*suite.body, cst.Return(cst.Name(name))])
