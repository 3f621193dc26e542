"""The report for people: each finding with its source lines, and what the run came to.

Everything is built of pieces of text with a style, so that the same code writes plain text and colours.

    train.py:14:5: error GG101 inplace-on-saved-tensor: y.add_() overwrites y, which sigmoid saved
        |
     12 | y = torch.sigmoid(x)
        |     ---------------- saved here by sigmoid
     14 | y.add_(1)
        | ^^^^^^^^^
        = fix: write y = y + 1 (safe)
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gradguard.cli.fingerprints import LineOf
from gradguard.cli.result import Outcome, Unread
from gradguard.findings import Applicability, Finding, Severity, Span
from gradguard.source.printable import printable

Piece = tuple[str, str]
"""Text and the name of its style, empty for none."""

Line = list[Piece]

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "information": "bold blue",
    "hint": "bold cyan",
    "path": "bold",
    "gutter": "blue",
    "related": "cyan",
    "note": "green",
    "dim": "dim",
}

TAB = "    "
LONGEST = 160
"""Columns of a source line that are shown."""
MEASURED = 4 * LONGEST
"""Characters of a line whose columns are counted: some take none."""


def render(outcome: Outcome, line_of: LineOf, *, statistics: bool = False) -> Iterator[Line]:
    """Lines of the report, which are lines whatever names and messages hold."""
    for line in _lines(outcome, line_of, statistics=statistics):
        yield [(printable(piece), style) for piece, style in line]


def _lines(outcome: Outcome, line_of: LineOf, *, statistics: bool) -> Iterator[Line]:
    for finding in outcome.findings:
        yield from _finding(finding, line_of)
        yield []
    if statistics and outcome.findings:
        yield from _statistics(outcome)
        yield []
    yield from _summary(outcome)


def _finding(finding: Finding, line_of: LineOf) -> Iterator[Line]:
    severity = finding.severity.value
    yield [
        (f"{finding.path}:{finding.span.line}:{finding.span.column}: ", "path"),
        (severity, severity),
        (f" {finding.code} ", severity),
        (f"{finding.name}: ", ""),
        (finding.message, ""),
    ]
    marks: dict[int, list[_Mark]] = {}
    others: list[_Mark] = []
    for mark in _marks(finding):
        if mark.path == finding.path:
            marks.setdefault(mark.span.line, []).append(mark)
        else:
            others.append(mark)
    lines = list(marks)
    width = max((len(str(line)) for line in lines), default=1)
    bar = [(" " * (width + 3) + "|", "gutter")]
    if any(line_of(finding.path, line).strip() for line in lines):
        yield [*bar]
        previous = 0
        for line in lines:
            if previous and line > previous + 1:
                yield [(" " * (width + 1) + "...", "gutter")]
            previous = line
            text = line_of(finding.path, line)
            yield [
                (f"  {line:>{width}} ", "gutter"),
                ("| ", "gutter"),
                (_show(text[:LONGEST].rstrip())[:LONGEST], ""),
            ]
            for mark in marks[line]:
                yield [*bar, (" ", ""), *_underline(mark, text)]
    for mark in others:
        yield [
            *bar[:0],
            (" " * (width + 3) + "= ", "gutter"),
            (f"{mark.path}:{mark.span.line}: ", ""),
            (mark.message, "related"),
        ]
    for note in finding.notes:
        yield [(" " * (width + 3) + "= ", "gutter"), (note, "")]
    for fix in finding.fixes:
        yield [
            (" " * (width + 3) + "= ", "gutter"),
            (f"fix: {fix.title}", "note"),
            (f" ({_HOW[fix.applicability]})", "dim"),
        ]


_HOW = {
    Applicability.SAFE: "safe: --fix",
    Applicability.UNSAFE: "may change numbers: --fix --unsafe-fixes",
    Applicability.MANUAL: "by hand",
}


@dataclass(frozen=True, slots=True)
class _Mark:
    path: str
    span: Span
    message: str
    style: str
    sign: str


def _marks(finding: Finding) -> list[_Mark]:
    own = _Mark(finding.path, finding.span, "", finding.severity.value, "^")
    marks = [own, *(_Mark(each.path, each.span, each.message, "related", "-") for each in finding.related)]
    return sorted(marks, key=lambda mark: (mark.span.line, mark.sign != "^", mark.span.column))


def _underline(mark: _Mark, text: str) -> Line:
    start = min(mark.span.column - 1, len(text))
    end = mark.span.end_column - 1 if mark.span.end_line == mark.span.line else len(text.rstrip())
    before = _width(_show(text[: min(start, MEASURED)]))
    length = max(1, _width(_show(text[start : min(end, start + MEASURED)])))
    before, length = min(before, LONGEST), max(1, min(length, LONGEST - min(before, LONGEST)))
    line: Line = [(" " * before, ""), (mark.sign * length, mark.style)]
    if mark.message:
        line.append((f" {mark.message}", mark.style))
    return line


def _show(text: str) -> str:
    return printable(text.replace("\t", TAB))


def _width(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    flat = sum(bool(unicodedata.combining(char)) for char in text)
    return len(text) + wide - flat


def _statistics(outcome: Outcome) -> Iterator[Line]:
    counts = Counter((each.code, each.name, each.severity) for each in outcome.findings)
    width = len(str(max(counts.values())))
    for (code, name, severity), count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        yield [(f"{count:>{width}} ", ""), (f"{severity.value:<11} ", severity.value), (f"{code} {name}", "")]


def _summary(outcome: Outcome) -> Iterator[Line]:
    counts = outcome.counts()
    total = sum(counts.values())
    line: Line = []
    if total:
        parts = [plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
        line.append((f"{plural(total, 'finding')} ({', '.join(parts)})", ""))
    else:
        line.append(("no findings", ""))
    line.append((f" in {plural(outcome.checked, 'file')} using torch of {outcome.files} read", ""))
    if outcome.callers:
        line.append((f" with {plural(outcome.callers, 'file')} importing them", ""))
    unread = outcome.unread
    if unread:
        parts = [plural(unread[what], what.value) for what in Unread if unread[what]]
        line.append((f"; {', '.join(parts)} not read", ""))
    if outcome.fixed:
        line.append((f"; {outcome.fixed} fixed", ""))
    if outcome.hidden:
        line.append((f"; {outcome.hidden} in the baseline", ""))
    yield line
    faults = len({(limit.path, limit.span.line) for limit in outcome.faults})
    if faults:
        why = "because of an internal error; --verbose shows it, please report it"
        yield [(f"{plural(faults, 'place')} not analysed {why}", "warning")]
    limits = len(outcome.limits) - len(outcome.faults)
    if limits:
        yield [
            (
                f"{plural(limits, 'place')} not analysed to the end; --verbose lists them",
                "dim",
            )
        ]


def plural(count: int, word: str) -> str:
    """A count with its word."""
    return f"{count} {word}" if count == 1 or word in ("information",) else f"{count} {word}s"
