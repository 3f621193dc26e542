"""Ignore comments that silence nothing, removed in whole or in part."""

from __future__ import annotations

import re

from gradguard.findings import FixPlan, Span
from gradguard.fixes.edit import Edit
from gradguard.source.text import Source

_LIST = re.compile(r"\[(?P<codes>[^\]\r\n]*)\]")


def remove_ignore(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The whole comment, or one selector of its list. data: `selector`, empty for the whole."""
    span = plan.span
    text = source.line(span.line)
    comment = text[span.column - 1 : span.end_column - 1]
    if not comment.startswith("#"):
        return None
    selector = dict(plan.data).get("selector", "")
    listed = _LIST.search(comment)
    if selector and listed is not None:
        codes = [code.strip() for code in listed["codes"].split(",")]
        kept = [code for code in codes if code and code != selector]
        if kept:
            start, end = span.column + listed.start("codes"), span.column + listed.end("codes")
            return (Edit(Span(span.line, start, span.line, end), ", ".join(kept)),)
    return (_whole(source, span, text),)


def _whole(source: Source, span: Span, text: str) -> Edit:
    before = text[: span.column - 1]
    # What stands behind the mark belongs to it (a reason), up to the next comment on the line.
    other = text.find("#", span.end_column - 1)
    if other >= 0:
        return Edit(Span(span.line, span.column, span.line, other + 1), "")
    if before.strip():
        return Edit(Span(span.line, len(before.rstrip()) + 1, span.line, len(text) + 1), "")
    if span.line < source.lines.count:
        return Edit(Span(span.line, 1, span.line + 1, 1), "")
    return Edit(Span(span.line, 1, span.line, len(text) + 1), "")
