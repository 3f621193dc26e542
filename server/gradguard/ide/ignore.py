"""The edit that silences one rule on one line, extending a comment that is there."""

from __future__ import annotations

import re

from gradguard.findings import Finding, Span
from gradguard.source.scan import string_end
from gradguard.source.text import Source

_MARK = re.compile(r"#\s*gradguard:\s*ignore(?![\w-])(?P<list>\[(?P<codes>[^\]\r\n]*)\])?", re.IGNORECASE)
_TOKEN = re.compile(r"#|\"\"\"|'''|[\"']")


def ignoring(finding: Finding, source: Source, reason: str = "") -> tuple[Span, str] | None:
    """Where to insert what so that the finding is silenced; None where a comment cannot stand.

    The comment goes to the end of the finding's last line, or further down where a string or a backslash
    leaves no room for one; any line of the statement does. `reason` stands behind the brackets, unless the
    comment that is extended gives one.
    """
    first, last = source.statement_lines(finding.span.line)
    start = min(max(finding.span.end_line, first), last)
    inside = _no_room(source, first, last)
    candidates = [line for line in (*range(start, last + 1), *range(first, start)) if line not in inside]
    for line in candidates:
        comment = comment_of(source, line)
        mark = _MARK.search(source.line(line), comment) if comment is not None else None
        if mark and mark["list"]:
            code = f", {finding.code}" if mark["codes"].strip() else finding.code
            end = mark.end("codes") + 1
            if reason and not source.line(line)[end:].partition("#")[0].strip():
                return Span(line, end, line, end + 1), f"{code}] {reason}"
            return Span(line, end, line, end), code
    if not candidates:
        return None
    line = candidates[0]
    text = source.line(line)
    end = len(text.rstrip()) + 1
    return Span(line, end, line, len(text) + 1), f"  # gradguard: ignore[{finding.code}] {reason}".rstrip()


def comment_of(source: Source, line: int) -> int | None:
    """Index in the line's text at which its comment starts, None where it has none. The line starts outside strings."""
    text = source.line(line)
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        if token.group() == "#":
            return token.start()
        at = string_end(text, token.start(), token.group())
    return None


def _no_room(source: Source, first: int, last: int) -> set[int]:
    """Lines of a statement whose end lies inside a string or behind a backslash."""
    begin = source.lines.start(first)
    text = source.text[begin : source.lines.start(last + 1)]
    none: set[int] = set()
    at = 0
    while (token := re.compile(r"#[^\r\n]*|\\(?=[\r\n])|\"\"\"|'''|[\"']").search(text, at)) is not None:
        at = token.end()
        line, _ = source.lines.position(begin + token.start())
        if token.group() == "\\":
            none.add(line)
        elif not token.group().startswith("#"):
            at = string_end(text, token.start(), token.group())
            end, _ = source.lines.position(begin + at)
            none.update(range(line, end))
    return none
