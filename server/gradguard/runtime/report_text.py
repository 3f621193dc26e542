"""The report of a run for people, with the source lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradguard.findings import Finding, Severity
from gradguard.report.findings import finding_lines
from gradguard.report.words import Words
from gradguard.runtime import lines
from gradguard.runtime.report import RunReport, labels, shown
from gradguard.source.printable import printable

_ENGLISH = Words()


def text_report(
    report: RunReport, root: Path | None = None, words: Words = _ENGLISH, width: int | None = None
) -> str:
    """The report for people: findings as `gradguard check` shows them, and what the run came to."""
    root = root or Path.cwd()
    out: list[str] = []
    for finding in report.findings:
        named = [finding.path, *(each.path for each in finding.related)]
        source = partial(_line, {shown(path, root): path for path in named})
        renamed = replace(
            finding,
            path=shown(finding.path, root),
            related=tuple(replace(each, path=shown(each.path, root)) for each in finding.related),
        )
        out.extend("".join(text for text, _ in line) for line in finding_lines(renamed, source, words, width))
        if report.parts:
            out.append(f"    seen in {labels(report.seen_in(finding))}")
        out.append("")
    if report.reads:
        out.append(words.text("host-reads"))
        for read in report.reads:
            steps = f" in {read.steps} steps" if read.steps > 1 else ""
            out.append(
                f"    {shown(read.path, root)}:{read.line}: {read.count} times{steps} ({', '.join(read.ops)})"
            )
        out.append("")
    # The numbers of a loop in which nothing was found say nothing to a reader.
    growing = [each for each in report.series if each.nodes and report.findings]
    for series in growing:
        out.append(
            f"{shown(series.path, root)}:{series.line}: {series.passes} passes ({series.what}): live graph nodes "
            f"{series.nodes[0]} -> {series.nodes[-1]}, saved bytes {series.saved_bytes[0]:,} -> "
            f"{series.saved_bytes[-1]:,}, at most {max(series.saved_bytes):,}"
            + (f" (in {series.process}, which kept most)" if series.process else "")
        )
    if growing:
        out.append("")
    out.extend(f"note: {limit.message}" for limit in report.limits)
    out.append(summary(report, words))
    return "".join(printable(line) + "\n" for line in out)


def _line(paths: Mapping[str, str], path: str, number: int) -> str:
    """A line of the file that is shown under this path."""
    source = lines.file(paths.get(path, path))
    return source.lines[number - 1].rstrip() if 0 < number <= len(source.lines) else ""


def summary(report: RunReport, words: Words = _ENGLISH) -> str:
    """What was found and watched, in a line. Silence of what was not watched is no good sign, and not told as one."""
    costs = report.costs
    where = f" in {labels(report.parts)}" if report.parts else ""
    if not costs.operators and not report.findings:
        return f"nothing was watched: no operator of torch ran{where or ' in this process'}"
    return words.text(
        "watched",
        found=counted(report.findings, words),
        operators=f"{costs.operators:,}",
        where=where,
        seconds=f"{costs.seconds:.2f}",
        own=f"{costs.own_seconds:.2f}",
        light=" (light)" if costs.light else "",
    )


def counted(findings: tuple[Finding, ...], words: Words = _ENGLISH) -> str:
    """How much was found of each severity."""
    counts = Counter(each.severity for each in findings)
    parts = (words.counted(counts[severity], severity.value) for severity in Severity if counts[severity])
    return ", ".join(parts) or words.text("nothing")
