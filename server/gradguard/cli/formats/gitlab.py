"""GitLab code quality report."""

from __future__ import annotations

import json

from gradguard.cli.cells import file_lines, file_of, said
from gradguard.cli.fingerprints import fingerprints
from gradguard.cli.result import Outcome
from gradguard.findings import Severity
from gradguard.report.findings import LineOf
from gradguard.source.printable import printable_json

_SEVERITIES = {
    Severity.ERROR: "critical",
    Severity.WARNING: "major",
    Severity.INFORMATION: "minor",
    Severity.HINT: "info",
}


def render(outcome: Outcome, line_of: LineOf) -> str:
    """The report as text; `line_of` gives the source text of a line."""
    marks = fingerprints(outcome.findings, line_of)
    issues = [
        {
            "description": f"{finding.code} {said(finding.path, finding.span)}{finding.message}",
            "check_name": finding.name,
            "fingerprint": mark,
            "severity": _SEVERITIES[finding.severity],
            "categories": ["Bug Risk" if finding.code.startswith(("GG1", "GG2")) else "Performance"],
            "location": {
                "path": file_of(finding.path),
                "lines": dict(zip(("begin", "end"), file_lines(finding.path, finding.span))),
            },
        }
        for finding, mark in zip(outcome.findings, marks)
    ]
    return printable_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"
