"""The JSON report, the same shape for `gradguard check` and `gradguard run`."""

from __future__ import annotations

import json
from typing import Any

from gradguard import __version__
from gradguard.cli import cells
from gradguard.cli.result import Outcome
from gradguard.findings import Finding
from gradguard.ide.edits import Edits
from gradguard.source.printable import printable_json


def render(outcome: Outcome) -> str:
    """The report as text, with a final line end."""
    return printable_json(json.dumps(document(outcome), indent=2, ensure_ascii=False)) + "\n"


def document(outcome: Outcome) -> dict[str, Any]:
    """The report as plain values. Lines and columns count from 1, columns in code points."""
    findings = [_finding(each, outcome.edits_of(index)) for index, each in enumerate(outcome.findings)]
    return {
        "version": __version__,
        "torch": outcome.torch,
        "findings": findings,
        "limits": [cells.plain(each) for each in outcome.limits],
        "errors": [
            {
                "file": cells.file_of(each.path),
                **({"cell": each.path.cell} if isinstance(each.path, cells.InCell) else {}),
                "line": each.line or None,
                "message": each.message,
            }
            for each in outcome.troubles
        ],
    }


def _finding(finding: Finding, edits: tuple[Edits | None, ...]) -> dict[str, Any]:
    return {
        **cells.plain(finding),
        "fixes": [
            {
                "title": fix.title,
                "applicability": fix.applicability.value,
                "edits": [{**span.plain(), "text": text} for span, text in known or ()],
            }
            for fix, known in zip(finding.fixes, edits)
        ],
    }
