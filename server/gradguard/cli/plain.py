"""Findings and limits as plain values, for JSON and the cache, and back."""

from __future__ import annotations

from typing import Any

from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Limit, Related, Severity, Span


def from_span(span: Span) -> list[int]:
    """Four numbers."""
    return [span.line, span.column, span.end_line, span.end_column]


def from_finding(finding: Finding) -> dict[str, Any]:
    """Everything a finding holds."""
    return {
        "path": finding.path,
        "span": from_span(finding.span),
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "message": finding.message,
        "related": [[each.path, from_span(each.span), each.message] for each in finding.related],
        "fixes": [
            [
                fix.kind,
                fix.title,
                fix.applicability.value,
                from_span(fix.span),
                [list(pair) for pair in fix.data],
            ]
            for fix in finding.fixes
        ],
        "notes": list(finding.notes),
    }


def to_finding(data: dict[str, Any]) -> Finding:
    """The finding that `from_finding` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    return Finding(
        path=data["path"],
        span=Span(*data["span"]),
        code=data["code"],
        name=data["name"],
        severity=Severity(data["severity"]),
        certainty=Certainty(data["certainty"]),
        message=data["message"],
        related=tuple(Related(path, Span(*span), message) for path, span, message in data["related"]),
        fixes=tuple(
            FixPlan(
                kind, title, Applicability(safety), Span(*span), tuple((name, value) for name, value in pairs)
            )
            for kind, title, safety, span, pairs in data["fixes"]
        ),
        notes=tuple(data["notes"]),
    )


def from_limit(limit: Limit) -> list[Any]:
    """Path, place and message."""
    return [limit.path, from_span(limit.span), limit.message]


def to_limit(data: list[Any]) -> Limit:
    """The limit that `from_limit` wrote. Raises TypeError or ValueError on anything else."""
    path, span, message = data
    return Limit(path, Span(*span), message)
