"""Fixes for writes that torch refuses at their statement.

The program ends there, so there are no numbers to keep: such a fix is safe only where the repaired statement
can mean one thing.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gradguard.engine.domain.events import RefusedWrite
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan
from gradguard.fixplans.caught import caught
from gradguard.fixplans.model import Context
from gradguard.fixplans.safety import second_order
from gradguard.fixplans.writes import rewritten, written
from gradguard.ops.table import Table
from gradguard.source.blocks import above

_ELEMENTWISE = frozenset(
    {"add_", "sub_", "mul_", "div_", "pow_", "exp_", "relu_", "sigmoid_", "tanh_", "clamp_"}
)
_EXPANDING = ("expand", "expand_as", "broadcast_to")


def permitted(context: Context, event: RefusedWrite) -> list[FixPlan]:
    """What makes torch accept the write, or a program without it."""
    plans: list[FixPlan] = []
    if event.reason in ("leaf", "view-of-leaf"):
        plans += _under_no_grad(context, event)
    if event.reason == "expanded":
        plans += _own_memory(context, event)
    if event.reason == "overlap":
        plans += _read_copy(context, event)
    if event.reason == "inference":
        plans += relaxed(context, event.source, Applicability.UNSAFE)
    # A clone of the whole made before `x[1:] = x[:-1]` would be read and written just the same.
    again = event.reason == "overlap" and event.write.kind == "setitem"
    anew = [] if again else rewritten(context, event.write)
    if event.reason in ("leaf", "view-of-leaf", "inference", "expanded", "overlap"):
        # Differentiating through the change, or leaving the shared memory alone, is another program.
        anew = [replace(plan, applicability=_no_more_than_unsafe(plan)) for plan in anew]
    return plans + anew


def relaxed(context: Context, made: Place | None, applicability: Applicability) -> list[FixPlan]:
    """`torch.no_grad()` for the `torch.inference_mode()` under which a tensor is made."""
    if made is None or made.path != context.analysis.path:
        return []
    call = _inference_call(context.analysis.sources[made.path].tree, made.node)
    if call is None:
        return []
    return context.plan(
        "relax-inference", "Use `torch.no_grad()` there", applicability, call, Place(made.path, call)
    )


def _inference_call(tree: ast.Module, made: ast.AST) -> ast.Call | None:
    """The innermost `inference_mode()` of a `with` or a decorator around a node."""
    for node in above(tree, made):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            heads = [item.context_expr for item in node.items]
        else:
            heads = list(getattr(node, "decorator_list", ()))
        for head in reversed(heads):
            if isinstance(head, ast.Call) and ast.unparse(head.func).rpartition(".")[2] == "inference_mode":
                return head
    return None


def _under_no_grad(context: Context, event: RefusedWrite) -> list[FixPlan]:
    statement = event.write.statement
    if not isinstance(statement, (ast.Expr, ast.AugAssign, ast.Assign)):
        return []
    # A step along a gradient is not meant to be differentiated itself.
    step = any(_is_gradient(part) for part in ast.walk(statement)) and _only_updates(context.table, statement)
    step = step and not second_order(context) and not caught(context, event.place)
    return context.plan(
        "no-grad",
        "Update it under `torch.no_grad()`",
        Applicability.SAFE if step else Applicability.UNSAFE,
        statement,
        event.write.place,
    )


def _is_gradient(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)


def _only_updates(ops: Table, statement: ast.Expr | ast.AugAssign | ast.Assign) -> bool:
    """Whether nothing is left of a statement but what it wrote, computed from finished numbers."""
    if isinstance(statement, ast.Expr):
        value = statement.value
        call = value.elt if isinstance(value, ast.ListComp) else value
        if not isinstance(call, ast.Call):
            return False
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        writes = last.endswith("_") or any(keyword.arg == "out" for keyword in call.keywords)
    else:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        writes = all(isinstance(target, ast.Subscript) for target in targets)
    return writes and all(
        _computes_numbers(ops, part)
        for part in ast.walk(statement)
        if isinstance(part, (ast.Call, ast.NamedExpr))
    )


def _computes_numbers(ops: Table, node: ast.Call | ast.NamedExpr) -> bool:
    """Whether a call is an op, whose result is gone once it is added to something."""
    if isinstance(node, ast.NamedExpr):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in ("float", "int", "min", "max", "abs", "len")
    if not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, ast.unparse(node.func.value)
    return ops.op(f"Tensor.{name}" if owner not in _HOMES else f"torch.{name}") is not None or owner == "math"


_HOMES = frozenset({"torch", "F"})


def _own_memory(context: Context, event: RefusedWrite) -> list[FixPlan]:
    source = event.source
    if source is None or source.path != event.place.path:
        return []
    node = source.node
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr not in _EXPANDING
    ):
        return []
    # Through a part of it the write may well be allowed, and meant for all who share it.
    # Only elementwise ops are sure to be refused: `tril_` and its like write overlapping memory unasked.
    elementwise = event.write.kind == "augmented" or event.write.op in _ELEMENTWISE
    whole = event.certain and elementwise and not isinstance(written(event.write), ast.Subscript)
    whole = whole and not caught(context, event.place)
    return context.plan(
        "clone",
        "Give it memory of its own: clone where it is expanded",
        Applicability.SAFE if whole else Applicability.UNSAFE,
        node,
        source,
    )


def _read_copy(context: Context, event: RefusedWrite) -> list[FixPlan]:
    source = event.source
    if source is None or source.path != event.place.path or not isinstance(source.node, ast.expr):
        return []
    return context.plan("clone", "Read a copy: clone it first", Applicability.UNSAFE, source.node, source)


def _no_more_than_unsafe(plan: FixPlan) -> Applicability:
    return Applicability.UNSAFE if plan.applicability is Applicability.SAFE else plan.applicability
