"""Plans for reads of the host on every pass of a loop."""

from __future__ import annotations

import ast
import re

from gradguard.engine.domain.events import HostRead
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan
from gradguard.fixplans.model import Context
from gradguard.source.loops import guardable, read_behind


def read_out(context: Context, event: HostRead) -> list[FixPlan]:
    """One read behind the loop, or on few of its passes: where the loop lets them be."""
    if event.per != "step" or event.statement is None:
        return []
    source = context.analysis.sources[event.place.path]
    span = source.span(event.statement)
    plans: list[FixPlan] = []
    behind = read_behind(source, span)
    if behind is not None and behind[1] is event.place.node:
        title = "Accumulate on the device, read once after the loop"
        plans += context.plan("item-after-loop", title, Applicability.UNSAFE, event.statement, event.place)
    return [*plans, *_seldom(context, event)]


def read_on_the_way(context: Context, event: HostRead) -> list[FixPlan]:
    """What an implicit read computes, made on the device; a log's text, made when somebody wants it."""
    place = event.place
    if event.how in ("max", "min"):
        return _largest(context, place, event.how, mixed=event.mixed)
    if event.how == "format" and _logs(context, event):
        title = "Log it lazily with `%s`"
        return context.plan("log-lazily", title, Applicability.UNSAFE, event.statement, place)
    return _seldom(context, event)


def _largest(context: Context, place: Place, how: str, *, mixed: bool) -> list[FixPlan]:
    """`torch.stack` of tensors, `clamp` of one tensor and a number; nothing where anything else is compared."""
    call = place.node
    if not isinstance(call, ast.Call) or call.keywords or not call.args:
        return []
    parts = call.args
    if len(parts) == 1 and isinstance(parts[0], (ast.List, ast.Tuple)):
        parts = parts[0].elts
    numbers = [part for part in parts if _is_number(part)]
    if len(parts) == 2 and len(numbers) == 1:
        bound = ast.unparse(numbers[0])
        keyword = "min" if how == "max" else "max"
        title = f"Use `clamp({keyword}={bound})`"
        return context.plan("clamp", title, Applicability.UNSAFE, call, place, keyword=keyword, bound=bound)
    if mixed or numbers or any(isinstance(part, ast.Starred) for part in parts):
        return []
    title = f"Use `torch.stack(...).{how}()`"
    return context.plan("stack", title, Applicability.UNSAFE, call, place, how=how)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is spelled as a number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _seldom(context: Context, event: HostRead) -> list[FixPlan]:
    """The statement on few passes of its loop, where it only reports."""
    if event.per != "step" or event.statement is None:
        return []
    source = context.analysis.sources[event.place.path]
    if guardable(source, source.span(event.statement)) is None:
        return []
    title = "Read it every 100 steps"
    return context.plan("guard-read", title, Applicability.UNSAFE, event.statement, event.place)


def _logs(context: Context, event: HostRead) -> bool:
    """Whether a logger is given one plain f-string, each value of which `%` can format alike."""
    statement = event.statement
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) != 1 or not call.args:
        return False
    text = call.args[0]
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _LEVELS or not isinstance(text, ast.JoinedStr):
        return False
    if "log" not in ast.unparse(func.value).lower():
        return False  # others that tell people something do not format it
    source = context.analysis.sources[event.place.path]
    if not _ONE_TEXT.fullmatch(source.slice(source.span(text))):
        return False
    values = [part for part in text.values if isinstance(part, ast.FormattedValue)]
    return all(value.conversion == -1 and _formats_alike(value.format_spec) for value in values)


def _formats_alike(spec: ast.expr | None) -> bool:
    parts = spec.values if isinstance(spec, ast.JoinedStr) else []
    if not all(isinstance(part, ast.Constant) for part in parts):
        return False
    return (
        _ALIKE.fullmatch("".join(str(part.value) for part in parts if isinstance(part, ast.Constant)))
        is not None
    )


_ONE_TEXT = re.compile(r"""[fF](?P<quote>["'])(?:(?!(?P=quote)).)+(?P=quote)""")
_ALIKE = re.compile(r"s?|0?\d*(\.\d+)?[dfeEgGx]")
_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception"})
