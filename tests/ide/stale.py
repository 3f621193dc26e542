"""What must be shown of a text that was reached by edits, worked out from cold runs alone."""

from __future__ import annotations

from dataclasses import replace

from gradguard.check.settings import DEFAULTS
from gradguard.check.workspace import EMPTY, Workspace
from gradguard.findings import Finding, Related, Span
from gradguard.ide.analysis import Analyser, Analysis, analysis
from gradguard.source.text import Source


def shown(found: Analysis) -> list[Finding]:
    """The findings of an answer where they were typed, without fixes and notes."""
    out = []
    for finding in found.findings:
        span = found.source.place(finding.span)
        assert span is not None
        related = [replace(each, span=found.source.place(each.span) or each.span) for each in finding.related]
        out.append(replace(finding, span=span, related=tuple(related), fixes=(), notes=()))
    return out


def expected(read: Source, analyser: Analyser, workspace: Workspace = EMPTY) -> list[Finding]:
    """The findings of a cold run of the text that is read, where their lines were typed.

    A piece of the typed text that parses has all of them. One that does not has those whose statement, and those
    of all places that explain it, was typed as it is read.
    """
    typed = Source(read.path, read.typed)
    lines = {line: line for line in range(1, typed.lines.count + 1)}
    if read.places is not None:
        found = {line: read.places.read(line) for line in lines}
        lines = {other: line for line, other in found.items() if other is not None}
    cold = Source(read.path, read.text)

    def place(span: Span) -> Span | None:
        first, last = cold.statement_lines(span.line)
        there = [lines.get(line) for line in range(first, max(last, span.end_line) + 1)]
        if None in there or there != list(range(there[0] or 0, (there[0] or 0) + len(there))):
            return None
        line, end_line = lines[span.line], lines[span.end_line]
        # The invariant that nothing may break: what is shown stands on the text it is about.
        for number, other in zip(range(line, end_line + 1), range(span.line, span.end_line + 1)):
            assert typed.line(number) == cold.line(other)
        return Span(line, span.column, end_line, span.end_column)

    out = []
    for finding in analysis(cold, DEFAULTS, workspace, analyser).findings:
        span = place(finding.span)
        if span is None:
            assert not lines.get(finding.span.line) or typed.is_broken(lines[finding.span.line])
            continue
        related: list[Related] = []
        gone = False
        for each in finding.related:
            where = place(each.span) if each.path == read.path else each.span
            gone = gone or where is None
            related += [replace(each, span=where)] if where is not None else []
        if gone and typed.is_broken(span.line):
            continue
        out.append(replace(finding, span=span, related=tuple(related), fixes=(), notes=()))
    return out
