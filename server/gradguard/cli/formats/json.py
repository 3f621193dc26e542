"""The JSON report, the same shape for `gradguard check` and `gradguard run`."""

from __future__ import annotations

import json
from typing import Any

from gradguard import __version__
from gradguard.cli.result import Edits, Outcome
from gradguard.findings import Finding, Limit, Span


def render(outcome: Outcome) -> str:
    """The report as text, with a final line end."""
    return json.dumps(document(outcome), indent=2, ensure_ascii=False) + "\n"


def document(outcome: Outcome) -> dict[str, Any]:
    """The report as plain values. Lines and columns count from 1, columns in code points."""
    findings = [_finding(each, outcome.edits_of(index)) for index, each in enumerate(outcome.findings)]
    return {
        "version": __version__,
        "torch": outcome.torch,
        "findings": findings,
        "limits": [_limit(each) for each in outcome.limits],
        "errors": [
            {"file": each.path, "line": each.line or None, "message": each.message}
            for each in outcome.troubles
        ],
    }


def _finding(finding: Finding, edits: tuple[Edits | None, ...]) -> dict[str, Any]:
    return {
        "file": finding.path,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        **_place(finding.span),
        "message": finding.message,
        "related": [
            {"file": each.path, **_place(each.span), "message": each.message} for each in finding.related
        ],
        "notes": list(finding.notes),
        "fixes": [
            {
                "title": fix.title,
                "applicability": fix.applicability.value,
                "edits": [{**_place(span), "text": text} for span, text in known or ()],
            }
            for fix, known in zip(finding.fixes, edits)
        ],
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {"file": limit.path, **_place(limit.span), "message": limit.message}


def _place(span: Span) -> dict[str, int]:
    return {
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
