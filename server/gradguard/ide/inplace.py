"""In place on purpose: which new tensors may become writes.

A rewrite is proven by the tape of the rewritten program: the write is reached, the rebound name alone leads to
the old value, its operands are seen to fit, and no finding appears that was not there before.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from gradguard.check.workspace import EMPTY, Workspace
from gradguard.engine import Analysis, analyse
from gradguard.engine.domain.sharing import Sharing
from gradguard.findings import Applicability, FixPlan, Span
from gradguard.fixes.edit import applied
from gradguard.fixplans import safety
from gradguard.fixplans.model import for_torch
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.rules import registry
from gradguard.source.printable import quotable
from gradguard.source.text import Source

UNSEEN = frozenset({"untyped", "shape"})


def rewrites(
    source: Source,
    span: Span,
    workspace: Workspace = EMPTY,
    *,
    known: Analysis | None = None,
    unseen: bool = False,
) -> list[FixPlan]:
    """In-place forms of what stands in a stretch, those that are proven. Costs an analysis for each candidate.

    known: an analysis of the source, whose parts are used again. `unseen`: dtypes and shapes need not be known,
    since torch will be asked anyway.
    """
    if source.errors:
        return []
    ops = (known.table if known else None) or table.load(None)
    plans = [plan for plan in candidates(source, span, ops) if _touches(plan.span, span)]
    if not plans:
        return []
    before = known or analyse(source, ops, workspace)
    return [plan for plan in plans if proven(plan, source, before, workspace, unseen=unseen)]


def candidates(source: Source, span: Span, ops: Table) -> Iterator[FixPlan]:
    """Statements and constructors on the lines of a stretch that have an in-place form."""
    data = tuple(for_torch(ops).items())
    for node in _on_lines(source, span.line, span.end_line):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _rebinds(node):
            name = quotable(ast.unparse(node.targets[0]))
            title = f"Make `{name}` in place"
            yield FixPlan("make-in-place", title, Applicability.UNSAFE, source.span(node), data)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            row = ops.module(f"torch.nn.{node.func.attr}")
            names = [param.name for param in row.init] if row is not None else []
            at = names.index("inplace") if "inplace" in names else -1
            given = len(node.args) > at or any(keyword.arg in (None, "inplace") for keyword in node.keywords)
            if not given:
                title = f"Make `{quotable(ast.unparse(node.func))}` work in place"
                yield FixPlan("add-inplace", title, Applicability.UNSAFE, source.span(node), data)


def proven(
    plan: FixPlan,
    source: Source,
    before: Analysis,
    workspace: Workspace = EMPTY,
    *,
    unseen: bool = False,
) -> bool:
    """Whether nothing else needs the value that the in-place form overwrites."""
    changed = _edited(plan, source)
    if changed is None or before.limits:
        return False
    after = analyse(changed, before.table or table.load(None), workspace, before, every_write=True)
    if after.limits or _codes(after) - _codes(before):
        return False
    found = _sharing(plan, changed, after)
    if found is None or found.reasons - {"whole", "truth", "alone"} - (UNSEEN if unseen else frozenset()):
        return False
    if safety.sees_ops(before) or safety.reads_versions(before):
        return False
    if not all(_keeps_sign(call) for call in _calls(source, plan.span)):
        return False
    if plan.kind == "add-inplace":
        return not found.slots and not safety.reads_flags(before)
    if not _keeps_dtype(plan, changed, found):
        return False
    return any(
        isinstance(one, ast.Assign)
        and source.span(one) == plan.span
        and found.slots == {ast.unparse(one.targets[0])}
        for one in _at(source, plan.span.line)
    )


_SLOPES = frozenset({"leaky_relu", "elu", "celu", "LeakyReLU", "ELU", "CELU"})
"""Where a slope is negative, torch cannot tell from the result what the input was, and refuses the backward."""


def _calls(source: Source, span: Span) -> Iterator[ast.Call]:
    for node in _on_lines(source, span.line, span.end_line):
        if isinstance(node, ast.Call) and _touches(source.span(node), span):
            yield node


def _keeps_sign(call: ast.Call) -> bool:
    """Whether the slope of an activation is seen not to be negative, if it has one."""
    if ast.unparse(call.func).rpartition(".")[2] not in _SLOPES:
        return True
    module = isinstance(call.func, ast.Attribute) and call.func.attr[:1].isupper()
    given = [*call.args[0 if module else 1 :], *(each.value for each in call.keywords if each.arg != "input")]
    return all(
        isinstance(one, ast.Constant) and isinstance(one.value, (int, float)) and one.value >= 0
        for one in given
    )


_KEEPING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""Operators that give integers for integers."""


def _keeps_dtype(plan: FixPlan, changed: Source, found: Sharing) -> bool:
    """Whether the new value has the dtype of the old one, which the write keeps, as far as numbers decide it."""
    statement = next(
        (
            node
            for node in _at(changed, plan.span.line)
            if isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr))
        ),
        None,
    )
    parts = list(ast.walk(statement)) if statement is not None else []
    if any(isinstance(part, ast.Constant) and isinstance(part.value, complex) for part in parts):
        return False
    if "whole" not in found.reasons:
        return True
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, _KEEPING):
        return False
    whole = isinstance(statement.value, ast.Constant) and type(statement.value.value) is int
    return "alone" not in found.reasons or (whole and "truth" not in found.reasons)


def _rebinds(node: ast.Assign) -> bool:
    """Whether the value reads the very name that the statement binds."""
    target = node.targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)) or not isinstance(node.value, (ast.BinOp, ast.Call)):
        return False
    name = ast.unparse(target)
    return any(isinstance(part, ast.expr) and ast.unparse(part) == name for part in ast.walk(node.value))


def _edited(plan: FixPlan, source: Source) -> Source | None:
    # Loads libcst.
    from gradguard.fixes import api

    edits = api.edits(plan, source)
    if not edits:
        return None
    # With trees of its own: those it would share move to where the same text stands now, and the source is still read.
    return Source(source.path, applied(source, edits))


def _sharing(plan: FixPlan, changed: Source, after: Analysis) -> Sharing | None:
    """What is known of the write that the rewrite made; None where it is not reached."""
    own = [
        found
        for node, found in after.sharing.items()
        if any(node is one for one in _at(changed, plan.span.line)) and _fits_plan(node, plan)
    ]
    if not own:
        return None
    total = own[0]
    for one in own[1:]:
        total = total | one
    return total


def _at(source: Source, line: int) -> Iterable[ast.AST]:
    return (node for node in _on_lines(source, line, line) if getattr(node, "lineno", 0) == line)


def _on_lines(source: Source, first: int, last: int) -> Iterator[ast.AST]:
    """Nodes of the statements at the top level that share a line with a stretch."""
    for statement in source.tree.body:
        if statement.lineno <= last and first <= (statement.end_lineno or statement.lineno):
            yield from ast.walk(statement)


def _fits_plan(node: ast.AST, plan: FixPlan) -> bool:
    if plan.kind == "add-inplace":
        return isinstance(node, ast.Call) and any(keyword.arg == "inplace" for keyword in node.keywords)
    return True


def _codes(analysis: Analysis) -> Counter[str]:
    return Counter(finding.code for finding in registry.findings(analysis))


def _touches(one: Span, other: Span) -> bool:
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )
