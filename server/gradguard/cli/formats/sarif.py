"""SARIF 2.1.0, as code scanning services read it: rules, places, related places, fixes and fingerprints."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from gradguard import __version__
from gradguard.check.catalogue import RuleInfo
from gradguard.cli.cells import InCell, file_lines, said
from gradguard.cli.fingerprints import fingerprints
from gradguard.cli.result import Outcome
from gradguard.findings import Finding, Limit, Severity, Span
from gradguard.ide.edits import Edits
from gradguard.report.findings import LineOf
from gradguard.source.printable import printable_json

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}


def render(
    outcome: Outcome,
    line_of: LineOf,
    rules: Iterable[RuleInfo],
    page_of: Callable[[str], str | None],
    link_of: Callable[[str], str],
) -> str:
    """The log as text. `page_of` gives the Markdown page of a rule by its name, `link_of` its address."""
    used = {finding.code for finding in outcome.findings}
    listed = [rule for rule in rules if rule.code in used]
    indices = {rule.code: index for index, rule in enumerate(listed)}
    marks = fingerprints(outcome.findings, line_of)
    results = [
        _result(finding, outcome.edits_of(index), indices.get(finding.code), marks[index])
        for index, finding in enumerate(outcome.findings)
    ]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "gradguard",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule, page_of(rule.name), link_of(rule.name)) for rule in listed],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": "The folder in which gradguard was started."}}
        },
        "invocations": [
            {
                "executionSuccessful": not outcome.blocked,
                "toolExecutionNotifications": [
                    *(
                        _notification(
                            each.path,
                            Span(each.line or 1, 1, each.line or 1, 1),
                            each.message,
                            "error" if each.blocks else "warning",
                        )
                        for each in outcome.troubles
                    ),
                    *(_limit(each) for each in outcome.limits),
                ],
            }
        ],
        "results": results,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return printable_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(rule: RuleInfo, page: str | None, link: str) -> dict[str, Any]:
    described: dict[str, Any] = {"id": rule.code, "name": rule.name, "helpUri": link}
    if rule.summary:
        described["shortDescription"] = {"text": rule.summary}
    if page:
        described["help"] = {"text": page, "markdown": page}
    return described


def _result(
    finding: Finding, edits: tuple[Edits | None, ...], rule_index: int | None, mark: str
) -> dict[str, Any]:
    notes = "".join(f"\n{note}" for note in finding.notes)
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": said(finding.path, finding.span) + finding.message + notes},
        "locations": [{"physicalLocation": _location(finding.path, finding.span)}],
        "partialFingerprints": {"gradguard/v1": mark},
        "properties": {"certainty": finding.certainty.value},
    }
    if rule_index is not None:
        result["ruleIndex"] = rule_index
    if finding.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _location(each.path, each.span),
                "message": {"text": said(each.path, each.span) + each.message},
            }
            for number, each in enumerate(finding.related, 1)
        ]
    fixes = [
        _fix(finding.path, fix.title, known)
        for fix, known in zip(finding.fixes, edits)
        if known and not isinstance(finding.path, InCell)
    ]
    if fixes:
        result["fixes"] = fixes
    return result


def _fix(path: str, title: str, edits: Edits) -> dict[str, Any]:
    return {
        "description": {"text": title},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path),
                "replacements": [
                    {"deletedRegion": _region(span), "insertedContent": {"text": text}}
                    for span, text in edits
                ],
            }
        ],
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return _notification(limit.path, limit.span, limit.message, "error" if limit.fault else "note")


def _notification(path: str, span: Span, message: str, level: str) -> dict[str, Any]:
    return {
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": _location(path, span)}],
    }


def _location(path: str, span: Span) -> dict[str, Any]:
    if isinstance(path, InCell):  # as the file has it: what is written there is JSON, with columns of its own
        first, last = file_lines(path, span)
        return {"artifactLocation": _artifact(path.file), "region": {"startLine": first, "endLine": last}}
    return {"artifactLocation": _artifact(path), "region": _region(span)}


def _artifact(path: str) -> dict[str, str]:
    if path.startswith("/"):
        return {"uri": "file://" + quote(os.fsencode(path))}
    if path[1:3] == ":/":
        return {"uri": "file:///" + quote(os.fsencode(path), safe="/:")}
    return {"uri": quote(os.fsencode(path)), "uriBaseId": "SRCROOT"}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
