"""The report for people: each finding with its source lines, what the run came to, and what to do next.

Everything is built of pieces of text with a style, so that the same code writes plain text and colours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gradguard.cli.result import Outcome, Unread
from gradguard.findings import Applicability, Severity
from gradguard.report.findings import LineOf, finding_lines
from gradguard.report.pieces import Line, wrapped
from gradguard.report.words import Words
from gradguard.source.printable import printable

_ENGLISH = Words()


def render(
    outcome: Outcome,
    line_of: LineOf,
    *,
    statistics: bool = False,
    words: Words = _ENGLISH,
    width: int | None = None,
) -> Iterator[Line]:
    """Lines of the report, which are lines whatever names and messages hold. width: that of the terminal, if any."""
    for line in _lines(outcome, line_of, statistics, words, width):
        yield [(printable(piece), style) for piece, style in line]


def _lines(
    outcome: Outcome, line_of: LineOf, statistics: bool, words: Words, width: int | None
) -> Iterator[Line]:
    for finding in outcome.findings:
        yield from finding_lines(finding, line_of, words, width)
        yield []
    if statistics and outcome.findings:
        yield from _statistics(outcome, words)
        yield []
    for line in _summary(outcome, words):
        yield from wrapped(line, width, 2)


def _statistics(outcome: Outcome, words: Words) -> Iterator[Line]:
    counts = Counter((each.code, each.name, each.severity) for each in outcome.findings)
    width = len(str(max(counts.values())))
    for (code, name, severity), count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        kind = severity.value
        yield [(f"{count:>{width}} ", ""), (f"{words.text(kind):<11} ", kind), (f"{code} {name}", "")]


def _summary(outcome: Outcome, words: Words) -> Iterator[Line]:
    counts = outcome.counts()
    total = sum(counts.values())
    parts = ", ".join(words.counted(counts[each], each.value) for each in Severity if counts[each])
    told = words.text("found", count=words.counted(total, "finding"), parts=parts)
    line: Line = [(told if total else words.text("none"), "")]
    line.append((words.text("read", files=words.counted(outcome.checked, "file"), all=outcome.files), ""))
    if outcome.callers:
        line.append((words.text("callers", files=words.counted(outcome.callers, "file")), ""))
    unread = outcome.unread
    if unread:
        parts = ", ".join(words.counted(unread[what], what.value) for what in Unread if unread[what])
        line.append((words.text("unread", parts=parts), ""))
    if outcome.fixed:
        line.append((words.text("fixed", count=outcome.fixed), ""))
    if outcome.hidden:
        line.append((words.text("hidden", count=outcome.hidden), ""))
    yield line
    faults = len({(limit.path, limit.span.line) for limit in outcome.faults})
    if faults:
        yield [(words.text("faults", places=words.counted(faults, "place")), "warning")]
    limits = len(outcome.limits) - len(outcome.faults)
    if limits:
        yield [(words.text("limits", places=words.counted(limits, "place")), "dim")]
    if total:
        yield [(_next(outcome, words), "dim")]


def _next(outcome: Outcome, words: Words) -> str:
    """The one thing to do now: safe fixes where there are some, else to read about the first finding."""
    safe = sum(
        any(plan.applicability is Applicability.SAFE for plan in each.fixes) for each in outcome.findings
    )
    if safe and not outcome.fixed:
        return words.text("next-safe", count=safe)
    return words.text("next-explain", code=outcome.findings[0].code)


def plural(count: int, word: str) -> str:
    """A count with its word."""
    return f"{count} {word}" if count == 1 or word in ("information",) else f"{count} {word}s"
