"""Which findings are shown while a text is typed, some pieces of which do not parse.

What is analysed is the text that is read for the typed one (`Source.edited`): every piece that does not parse is
exchanged for the last text of it that did. What is shown are the findings of that text, nothing else:

    in a piece that parses      all of them. A related place that was changed since is left out.
    in one that does not        those whose lines are unchanged: the whole statement of the finding, and those of all
                                related places of this file. Their fixes are left out, as they were made for the old text.

So what is shown follows from the typed text and the good texts of its broken pieces, and is what a cold run of the
text that is read gives, at lines with the same text. Nothing is carried from answer to answer. While only one piece
is broken and nothing else is edited, what is read is the last text that parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from gradguard.check.workspace import Workspace
from gradguard.findings import Finding, Related, Span
from gradguard.source.text import Source


def shown(findings: Iterable[Finding], source: Source, workspace: Workspace) -> tuple[Finding, ...]:
    """The findings that are shown of a file, at their places in what is read."""
    out: list[Finding] = []
    for finding in findings:
        alive = source.alive(finding.span)
        if not alive and not _unchanged(finding, source):
            continue
        related = _related(finding, source, workspace)
        if related != finding.related:
            finding = replace(finding, related=related)
        out.append(finding if alive else replace(finding, fixes=()))
    return tuple(out)


def elsewhere(findings: Iterable[Finding], source: Source, workspace: Workspace) -> tuple[Finding, ...]:
    """Findings in other files, all of their places where they were typed."""
    out: list[Finding] = []
    for finding in findings:
        other = workspace.source(finding.path)
        alive = other is None or other.places is None or other.alive(finding.span)
        if other is not None and not alive and not _unchanged(finding, other):
            continue
        span = other.place(finding.span) if other is not None else finding.span
        related = []
        for each in _related(finding, source, workspace):
            place = source.place(each.span) if each.path == source.path else each.span
            if place is not None:
                related.append(replace(each, span=place))
        fixes = finding.fixes if alive else ()
        if span is not None:
            out.append(replace(finding, span=span, related=tuple(related), fixes=fixes))
    return tuple(out)


def from_here(finding: Finding, source: Source) -> Finding | None:
    """A finding in a file that nobody looks at, at the place in this one that leads there: of those that explain it the first.

    Where none does, at the import of that file. The place of the mistake itself comes first among the related ones. All
    of them are where they were typed.
    """
    here = [each for each in finding.related if each.path == source.path]
    span = here[0].span if here else _import_of(finding.path, source)
    if span is None:
        return None
    place = Related(finding.path, finding.span, finding.message)
    others = [each for each in finding.related if not here or each is not here[0]]
    return replace(finding, path=source.path, span=span, related=(place, *others), fixes=())


def _import_of(path: str, source: Source) -> Span | None:
    """The first import that names a file."""
    name = PurePath(path).stem if not path.endswith("__init__.py") else PurePath(path).parent.name
    imports = [node for node in ast.walk(source.tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in imports:
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if name in {each.rpartition(".")[2] for each in (module, *(alias.name for alias in node.names))}:
            return source.place(source.span(node))
    return source.place(source.span(imports[0])) if imports else None


def _unchanged(finding: Finding, source: Source) -> bool:
    spans = [finding.span, *(each.span for each in finding.related if each.path == source.path)]
    return all(_stands(span, source) for span in spans)


def _stands(span: Span, source: Source) -> bool:
    """Whether the statement at a stretch was typed as it is read."""
    first, last = source.statement_lines(span.line)
    return source.place(Span(first, 1, max(last, span.end_line), 1)) is not None


def _related(finding: Finding, source: Source, workspace: Workspace) -> tuple[Related, ...]:
    """Related places that still stand; those of other files where they were typed."""
    out: list[Related] = []
    for each in finding.related:
        if each.path == source.path:
            if source.places is None or _stands(each.span, source):
                out.append(each)
            continue
        other = workspace.source(each.path)
        place = each.span
        if other is not None and other.places is not None:
            if not _stands(each.span, other):
                continue
            place = other.place(each.span) or each.span
        out.append(replace(each, span=place) if place != each.span else each)
    return tuple(out)
