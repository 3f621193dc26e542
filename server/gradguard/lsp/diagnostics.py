"""Findings as the client's diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lsprotocol import types as lsp

from gradguard.findings import Applicability, Certainty, Finding, Related, Severity
from gradguard.ide.pages import link
from gradguard.ide.wording import Wording
from gradguard.lsp.client import Client
from gradguard.lsp.snapshot import Snapshot

SOURCE = "gradguard"

SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFORMATION: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}
UNNECESSARY = frozenset(("GG901", "GG206"))

Elsewhere = Callable[[Related], "lsp.Location | None"]
"""The place of a related span in another file; None where its text cannot be had."""


def diagnostics(
    findings: Iterable[Finding],
    snapshot: Snapshot,
    client: Client,
    wording: Wording,
    elsewhere: Elsewhere,
    encoding: str,
) -> dict[str, list[lsp.Diagnostic]]:
    """Diagnostics by document, each document of the program named."""
    by_uri: dict[str, list[lsp.Diagnostic]] = {each.uri: [] for each in snapshot.documents}
    for finding in findings:
        at = snapshot.location(finding.span, encoding)
        if at is None:
            continue
        by_uri[at.uri].append(_diagnostic(finding, at.range, snapshot, client, wording, elsewhere, encoding))
    return by_uri


def _diagnostic(
    finding: Finding,
    where: lsp.Range,
    snapshot: Snapshot,
    client: Client,
    wording: Wording,
    elsewhere: Elsewhere,
    encoding: str,
) -> lsp.Diagnostic:
    related: list[lsp.DiagnosticRelatedInformation] = []
    if client.related:
        for each in finding.related:
            place = snapshot.location(each.span, encoding) if each.path == snapshot.path else elsewhere(each)
            if place is not None:
                message = wording.message(each.message)
                related.append(lsp.DiagnosticRelatedInformation(location=place, message=message))
    message = wording.message(finding.message)
    if finding.certainty is Certainty.OBSERVED:
        message = wording.text("observed", message=message)
    tags = []
    if finding.code in UNNECESSARY and lsp.DiagnosticTag.Unnecessary in client.tags:
        tags.append(lsp.DiagnosticTag.Unnecessary)
    return lsp.Diagnostic(
        range=where,
        message=message,
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=lsp.CodeDescription(href=link(finding.name)) if client.links else None,
        source=SOURCE,
        tags=tags or None,
        related_information=related or None,
        data=_data(finding) if client.data else None,
    )


def _data(finding: Finding) -> dict[str, object]:
    safe = any(plan.applicability is Applicability.SAFE for plan in finding.fixes)
    return {
        "name": finding.name,
        "certainty": finding.certainty.value,
        "fixable": bool(finding.fixes),
        "safe": safe,
    }
