"""Annotations for GitHub Actions: one workflow command a finding."""

from __future__ import annotations

from gradguard.cli.cells import InCell, file_lines, file_of, said
from gradguard.cli.result import Outcome
from gradguard.findings import Severity, Span
from gradguard.source.printable import printable

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}


def render(outcome: Outcome) -> str:
    """One line for each finding, then one for each file that could not be checked, and for what was lost of others."""
    lines = []
    for finding in outcome.findings:
        span = finding.span
        line, end_line = file_lines(finding.path, span)
        places: dict[str, str | int] = {"file": file_of(finding.path), "line": line, "endLine": end_line}
        # GitHub refuses columns on an annotation of several lines.
        if span.line == span.end_line and not isinstance(finding.path, InCell):
            places |= {"col": span.column, "endColumn": max(span.column, span.end_column - 1)}
        places["title"] = f"{finding.code} {finding.name}"
        related = "".join(f"\n{each.path}:{each.span.line}: {each.message}" for each in finding.related)
        message = said(finding.path, span) + finding.message + related
        lines.append(command(_COMMANDS[finding.severity], places, message))
    for trouble in outcome.troubles:
        at: dict[str, str | int] = {"file": file_of(trouble.path)}
        if trouble.line:
            at["line"] = file_lines(trouble.path, Span(trouble.line, 1, trouble.line, 1))[0]
        lines.append(
            command(
                "error" if trouble.blocks else "warning",
                {**at, "title": "gradguard could not check this file"},
                trouble.message,
            )
        )
    for fault in outcome.parts_lost:
        line = file_lines(fault.path, fault.span)[0]
        at = {"file": file_of(fault.path), "line": line, "title": "gradguard could not check this"}
        lines.append(command("error" if outcome.strict else "warning", at, fault.message))
    return "".join(line + "\n" for line in lines)


def command(name: str, properties: dict[str, str | int], message: str) -> str:
    """A workflow command, escaped as the runner unescapes it; that knows line ends, but no other control characters."""
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return printable(_escaped(text))


def _property(text: str) -> str:
    return printable(_escaped(text).replace(":", "%3A").replace(",", "%2C"))


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
