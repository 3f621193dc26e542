"""GG302: reads that do not look like reads, on every pass of the step loop."""

from __future__ import annotations

import ast
import re

from gradguard.engine.domain.events import Event, HostRead
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.rules.model import INFORMATION, Context, Rule, quoted
from gradguard.rules.reading import counts, often

_HOW = {
    "bool": "as a condition",
    "format": "as text",
    "print": "as text",
    "index": "as an index or size",
    "size": "as a size",
    "mask": "through a mask",
    "mask again": "again in its backward",
}


def render(context: Context, event: Event) -> Finding | None:
    """Implicit reads."""
    if not isinstance(event, HostRead) or not event.implicit or event.compiled or not counts(context, event):
        return None
    fixes: list[FixPlan] = []
    if event.how in ("max", "min"):
        fixes = context.plan(
            "stack",
            f"Use `torch.stack(...).{event.how}()`",
            Applicability.UNSAFE,
            event.place.node,
            event.place,
            how=event.how,
        )
    elif event.how == "format" and _logs(context, event):
        fixes = context.plan(
            "log-lazily", "Log it lazily with `%s`", Applicability.UNSAFE, event.statement, event.place
        )
    how = _HOW.get(event.how, f"by `{event.how}`")
    return context.finding(
        event,
        f"{quoted(event.text)} is read {how}: the host waits for the device {often(event)}",
        severity=INFORMATION,
        related=[(event.loop, "in this loop")],
        fixes=fixes,
    )


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


RULE = Rule(
    "GG302",
    "implicit-sync-in-loop",
    "a tensor read as a condition, number, text, index or size, or by an op of data-dependent size, on every pass",
    (HostRead,),
    render,
)
