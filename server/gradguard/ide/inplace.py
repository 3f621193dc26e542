"""In place on purpose: which new tensors may become writes, and a file with its writes undone.

A rewrite is proven by the tape of the rewritten program: the write is reached, the rebound name alone leads to
the old value, its operands are seen to fit, and no finding appears that was not there before.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from gradguard.check.workspace import EMPTY, Workspace
from gradguard.engine import Analysis, analyse
from gradguard.engine.domain.sharing import NOBODY, Sharing
from gradguard.findings import Applicability, FixPlan, Span
from gradguard.fixes.edit import applied, collide
from gradguard.fixplans import safety
from gradguard.fixplans.model import for_torch
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.rules import registry
from gradguard.source.printable import quotable
from gradguard.source.text import Source

MAX_ROUNDS = 8
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


def undone(source: Source, lines: range, workspace: Workspace = EMPTY, *, tensors: Iterable[str] = ()) -> str:
    """The text with every in-place write that stands on these lines made into a new tensor, as far as there is a way.

    `tensors`: names that are tensors there although nothing in the text says so.
    """
    # Loads libcst.
    from gradguard.fixes import api

    names = frozenset(tensors)
    for again in range(MAX_ROUNDS):
        sharing = analyse(source, table.load(None), workspace, every_write=True).sharing
        mine = {id(node) for node in ast.walk(source.tree)}
        written = [node for node in sharing if id(node) in mine and _line(node) in lines]
        written += [
            node for node in _augmented(source, names) if _line(node) in lines and node not in sharing
        ]
        edits: list[api.Edit] = []
        for node in sorted(written, key=_line):
            plan = _undoing(node, source, sharing.get(node, NOBODY))
            # A write that has been given a clone is still a write: once is enough.
            if plan is None or (again and plan.kind == "clone-before"):
                continue
            made = api.edits(plan, source) or ()
            if not any(collide(one.span, other.span) for one in made for other in edits):
                edits.extend(made)
        if not edits:
            break
        text = applied(source, edits)
        lines = range(lines.start, lines.stop + text.count("\n") - source.text.count("\n"))
        source = Source(source.path, text)
    return source.text


def _augmented(source: Source, names: frozenset[str]) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in names
    ]


def _undoing(node: ast.AST, source: Source, sharing: Sharing) -> FixPlan | None:
    span = source.span(node)
    kind, name = "clone-before", None
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, (ast.Name, ast.Attribute)):
            kind, name = "out-of-place", ast.unparse(node.target)
        else:
            name, _ = _place_of(node.target, sharing.slots)
    elif isinstance(node, ast.Assign):
        target = next((each for each in node.targets if isinstance(each, ast.Subscript)), None)
        name, _ = _place_of(target, sharing.slots) if target is not None else (None, False)
    elif isinstance(node, ast.Call):
        if any(keyword.arg == "inplace" for keyword in node.keywords) and isinstance(
            node.func, ast.Attribute
        ):
            if node.func.attr[:1].isupper():
                return FixPlan("drop-inplace", "", Applicability.SAFE, span)
        found = [_place_of(each, sharing.slots) for each in _written(node)]
        name, whole = next((each for each in found if each[0]), ("" if not sharing.slots else None, True))
        kind = "out-of-place" if whole else kind
    return FixPlan(kind, "", Applicability.SAFE, span, (("name", name),)) if name is not None else None


def _written(call: ast.Call) -> Iterator[ast.expr]:
    """What a call may write: `out=`, the receiver of its first method, its first argument."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "out")
    root: ast.expr = call
    while (
        isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute) and root.func.attr.endswith("_")
    ):
        root = root.func.value
    if root is not call:
        yield root
    yield from call.args[:1]


def _place_of(node: ast.expr, slots: frozenset[str]) -> tuple[str | None, bool]:
    """The place that an expression names, or names a part or view of; whether it is all of it."""
    whole = True
    while True:
        text = ast.unparse(node)
        if text in slots:
            return text, whole
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None, False
        whole = False


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


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _touches(one: Span, other: Span) -> bool:
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )
