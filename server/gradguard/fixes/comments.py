"""Ignore comments that silence nothing, removed in whole or in part."""

from __future__ import annotations

import re

from gradguard.findings import FixPlan, Span
from gradguard.fixes.edit import Edit
from gradguard.source.text import Source

_LIST = re.compile(r"\[(?P<codes>[^\]\r\n]*)\]")
_BETWEEN = ", \t\f\v"
"""What stands between the selectors of a list."""


def remove_ignore(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The whole comment, or one selector of its list. data: `selector`, empty for the whole."""
    span = plan.span
    text = source.line(span.line)
    comment = text[span.column - 1 : span.end_column - 1]
    if not comment.startswith("#"):
        return None
    selector = dict(plan.data).get("selector", "")
    listed = _LIST.search(comment)
    if not selector or listed is None:
        return (_whole(source, span, text),)
    places = _places(selector, listed["codes"])
    if places is None:
        return (_whole(source, span, text),)
    first = span.column + listed.start("codes")
    return tuple(Edit(Span(span.line, first + start, span.line, first + end), "") for start, end in places)


def _places(selector: str, codes: str) -> list[tuple[int, int]] | None:
    """Where a selector stands in a list, up to the next one; at the end, from the one before.

    None where nothing else stands there, empty where the selector does not. Only what is around it is looked at: a list may
    be very long, and each of its selectors have a fix.
    """
    found: list[tuple[int, int]] = []
    at = codes.find(selector)
    while at >= 0:
        end = at + len(selector)
        word = _parts(codes[max(at - 1, 0) : at]) and _parts(codes[end : end + 1])
        while end < len(codes) and _parts(codes[end]):
            end += 1
        if word and found and found[-1][1] == at:
            found[-1] = found[-1][0], end
        elif word:
            found.append((at, end))
        at = codes.find(selector, end)
    if found and found[-1][1] == len(codes):
        start = found[-1][0]
        while start and _parts(codes[start - 1]):
            start -= 1
        if not start:
            return None
        found[-1] = start, len(codes.rstrip(_BETWEEN))
    return found


def _parts(between: str) -> bool:
    """Whether this is no part of a selector."""
    return not between.strip(_BETWEEN)


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
