"""The report of a run for people, with the source lines."""

from __future__ import annotations

from pathlib import Path

from gradguard.findings import Finding, Severity, Span
from gradguard.runtime import lines
from gradguard.runtime.report import RunReport, labels, shown
from gradguard.source.printable import printable


def text_report(report: RunReport, root: Path | None = None) -> str:
    """The report for people, with the source lines."""
    root = root or Path.cwd()
    out: list[str] = []
    for finding in report.findings:
        out.append(
            f"{shown(finding.path, root)}:{finding.span.line}:{finding.span.column}: "
            f"{finding.severity.value}: {finding.code} [{finding.name}] {finding.message}"
        )
        out.extend(_quoted(finding.path, finding.span))
        for related in finding.related:
            out.append(f"    {shown(related.path, root)}:{related.span.line}: {related.message}")
            out.extend("    " + text for text in _quoted(related.path, related.span, marked=False))
        out.extend(f"    {line}" for note in finding.notes for line in note.split("\n"))
        if report.parts:
            out.append(f"    seen in {labels(report.seen_in(finding))}")
        out.append("")
    if report.reads:
        out.append("Host reads (an accelerator would make the host wait):")
        for read in report.reads:
            steps = f" in {read.steps} steps" if read.steps > 1 else ""
            out.append(
                f"    {shown(read.path, root)}:{read.line}: {read.count} times{steps} ({', '.join(read.ops)})"
            )
        out.append("")
    for series in report.series:
        if series.nodes:
            out.append(
                f"{shown(series.path, root)}:{series.line}: {series.passes} passes ({series.what}): live graph nodes "
                f"{series.nodes[0]} -> {series.nodes[-1]}, saved bytes {series.saved_bytes[0]:,} -> "
                f"{series.saved_bytes[-1]:,}, at most {max(series.saved_bytes):,}"
                + (f" (in {series.process}, which kept most)" if series.process else "")
            )
    if report.series:
        out.append("")
    out.extend(f"note: {limit.message}" for limit in report.limits)
    out.append(summary(report))
    return "".join(printable(line) + "\n" for line in out)


def _quoted(path: str, span: Span, marked: bool = True) -> list[str]:
    source = lines.file(path)
    if not 0 < span.line <= len(source.lines):
        return []
    text = source.lines[span.line - 1].rstrip()
    bare = text.lstrip()
    quoted = [f"  {span.line:>5} | {_printed(bare)}"]
    if marked:
        start = max(span.column - 1 - (len(text) - len(bare)), 0)
        end = span.end_column - 1 - (len(text) - len(bare)) if span.end_line == span.line else len(bare)
        under = "^" * max(len(_printed(bare[start:end])), 1)
        quoted.append("        | " + " " * len(_printed(bare[:start])) + under)
    return quoted


def _printed(source: str) -> str:
    return printable(source.replace("\t", "    "))


def summary(report: RunReport) -> str:
    """What was found and watched, in a line. Silence of what was not watched is no good sign, and not told as one."""
    costs = report.costs
    where = f" in {labels(report.parts)}" if report.parts else ""
    if not costs.operators and not report.findings:
        return f"nothing was watched: no operator of torch ran{where or ' in this process'}"
    return (
        f"{counted(report.findings)}; watched {costs.operators:,} operators{where} in {costs.seconds:.2f} s, "
        f"{costs.own_seconds:.2f} s of them spent by the monitor{' (light)' if costs.light else ''}"
    )


def counted(findings: tuple[Finding, ...]) -> str:
    """How much was found of each severity."""
    if not findings:
        return "nothing found"
    words = []
    for severity in Severity:
        number = sum(f.severity is severity for f in findings)
        if number:
            words.append(
                f"{number} {severity.value}{'s' if number > 1 and severity is not Severity.INFORMATION else ''}"
            )
    return ", ".join(words)
