"""Host reads taken off the step: summed on the device, guarded, logged lazily."""

from __future__ import annotations

import ast
import re

import libcst as cst

from gradguard.findings import FixPlan, Span
from gradguard.fixes.edit import Edit
from gradguard.fixes.graph import detached
from gradguard.fixes.imports import torch_name, with_torch
from gradguard.fixes.region import Region
from gradguard.fixes.syntax import expression, text_of
from gradguard.source.text import Source

EVERY = 100
"""Steps between two reads of a guarded statement."""


def item_after_loop(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`total += loss.item()` on the device, with `total = total.item()` once behind the loop.

    `losses.append(loss.item())` likewise, with one `torch.stack(losses).tolist()`.
    """
    loop = innermost_loop(source, plan.span.line)
    if loop is None:
        return None
    region = Region.of(source, [source.span(loop)])
    whole = region.find(source.span(loop), cst.BaseCompoundStatement) if region is not None else None
    statement = region.find(plan.span, cst.BaseSmallStatement) if region is not None else None
    if region is None or statement is None or whole is None:
        return None
    reads = [call for call in region.within(statement, cst.Call) if _is_item(call)]
    if len(reads) != 1:
        return None
    read = reads[0]
    assert isinstance(read.func, cst.Attribute)
    if isinstance(statement, cst.AugAssign) and isinstance(statement.operator, cst.AddAssign):
        name = text_of(statement.target)
        behind = f"{name} = {name}.item()"
    elif isinstance(statement, cst.Expr) and _appends(statement.value, read):
        assert isinstance(statement.value, cst.Call)
        assert isinstance(statement.value.func, cst.Attribute)
        name = text_of(statement.value.func.value)
        behind = f"{name} = {torch_name(source)}.stack({name}).tolist()"
    else:
        return None
    region.replace(read, detached(read.func.value))
    region.after(whole, behind)
    return with_torch(source, region.edits())


def guard_read(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The statement, and those that need what it binds, under `if step % 100 == 0:`."""
    loop = innermost_loop(source, plan.span.line)
    step = counter(loop) if loop is not None else None
    if loop is None or step is None:
        return None
    statements = _guarded(loop, plan.span.line)
    if not statements:
        return None
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


def innermost_loop(source: Source, line: int) -> ast.For | ast.While | None:
    """The innermost loop whose body holds a line."""
    found: ast.For | ast.While | None = None
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.For, ast.While)) and node.body[0].lineno <= line <= (
            node.body[-1].end_lineno or 0
        ):
            if found is None or node.lineno > found.lineno:
                found = node
    return found


def counter(loop: ast.For | ast.While) -> str | None:
    """The name that counts a loop's passes: of `enumerate` or `range`."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    name = ast.unparse(loop.iter.func)
    target = loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        return target.elts[0].id
    return target.id if name in ("range", "trange") and isinstance(target, ast.Name) else None


def _guarded(loop: ast.For | ast.While, line: int) -> list[ast.stmt]:
    """Statements that may be skipped on most passes; none where later ones need what they bind."""
    index = next((i for i, one in enumerate(loop.body) if one.lineno <= line <= (one.end_lineno or 0)), None)
    if index is None:
        return []
    statement = loop.body[index]
    if isinstance(statement, ast.Expr):
        return [statement]
    if not isinstance(statement, ast.Assign) or not all(isinstance(t, ast.Name) for t in statement.targets):
        return []
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    users = [
        i
        for i, one in enumerate(loop.body)
        if i != index and any(_loads(part, names) for part in ast.walk(one))
    ]
    if any(i < index for i in users):
        return []
    chosen = loop.body[index : max([index, *users]) + 1]
    simple = all(isinstance(one, ast.Expr) for one in chosen[1:])
    return chosen if simple else []


def _loads(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)


def log_lazily(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """`log.debug(f"{loss}")` as `log.debug("%s", loss)`: the text is made only when it is logged."""
    region = Region.of(source, [plan.span])
    statement = region.find(plan.span, cst.Expr) if region is not None else None
    call = statement.value if statement is not None else None
    if region is None or not isinstance(call, cst.Call) or len(call.args) != 1:
        return None
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _LEVELS:
        return None
    text = call.args[0].value
    if not isinstance(text, cst.FormattedString) or text.start.lower() not in ('f"', "f'"):
        return None
    pattern, values = "", []
    for part in text.parts:
        if isinstance(part, cst.FormattedStringText):
            pattern += part.value.replace("{{", "{").replace("}}", "}").replace("%", "%%")
            continue
        spec = _specification(part)
        if spec is None or not isinstance(part, cst.FormattedStringExpression):
            return None
        pattern += f"%{spec}"
        values.append(cst.Arg(part.expression))
    quote = text.start[1:]
    format_ = expression(f"{quote}{pattern}{quote}")
    region.replace(call, call.with_changes(args=[cst.Arg(format_), *values]))
    return region.edits()


def _specification(part: cst.BaseFormattedStringContent) -> str | None:
    if not isinstance(part, cst.FormattedStringExpression) or part.conversion or part.equal:
        return None
    spec = "".join(
        inner.value if isinstance(inner, cst.FormattedStringText) else "{" for inner in part.format_spec or ()
    )
    if not spec:
        return "s"
    return spec if re.fullmatch(r"0?\d*(\.\d+)?[dfeEgGxs]", spec) else None


_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception"})


def _is_item(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "item" and not call.args


def _appends(value: cst.BaseExpression, read: cst.Call) -> bool:
    return (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == "append"
        and len(value.args) == 1
        and value.args[0].value is read
    )


def _line(region: Region, span: Span) -> cst.CSTNode | None:
    found = region.find(span, cst.BaseSmallStatement)
    return region.parent(found) if found is not None else None
