"""Apply fixes to files: safe ones, or also those that may change numbers; each round is checked anew.

A file is read, fixed in memory until nothing more can be done, and replaced at once. Fixes that overlap wait
for the next round. A result that does not parse is dropped, and so is every fix for a file that did not parse
before. A file that somebody else wrote meanwhile is left alone.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradguard.check.api import Report
from gradguard.cli.reading import Unreadable, decode, read_bytes, replace_file
from gradguard.cli.worker import Checker, Job
from gradguard.findings import Applicability, Span
from gradguard.source.decode import Decoded, Undecodable
from gradguard.source.text import Source

ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing made of a file."""

    before: Decoded
    after: str
    report: Report
    """For the text after."""
    count: int

    def diff(self, name: str) -> Iterator[str]:
        """Lines of a unified diff, with their ends."""
        lines = difflib.unified_diff(
            self.before.text.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        for line in lines:
            yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def fix(job: Job, checker: Checker, *, unsafe: bool) -> Fixed:
    """Fix one file in memory. Raises Unreadable."""
    before = decode(read_bytes(Path(job.path)) if job.data is None else job.data)
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    source, report = checker.text_checked(job, before.text)
    first = report
    count = 0
    for _ in range(ROUNDS):
        if source.errors:
            break
        edits = list(_edits(source, report, allowed))
        if not edits:
            break
        text = apply(source, [edit for group in edits for edit in group], before.newline)
        if text == source.text or not _parses(text):
            break
        after, found = checker.text_checked(job, text)
        if found.crash:
            break
        source, report, count = after, found, count + len(edits)
    return Fixed(before, source.text, report if count else first, count)


def write(path: str, fixed: Fixed) -> None:
    """Put the fixed text in the place of the file. Raises Unreadable when it changed since it was read."""
    target = Path(path)
    try:
        data = fixed.before.encode(fixed.after)
    except Undecodable as error:
        raise Unreadable(str(error)) from None
    if read_bytes(target) != fixed.before.data:
        raise Unreadable("changed while it was being fixed; left as it is")
    try:
        replace_file(target, data)
    except OSError as error:
        raise Unreadable(f"cannot be written: {error.strerror}") from None


def apply(source: Source, edits: list[tuple[Span, str]], newline: str) -> str:
    """The text with these replacements, which do not overlap, in the file's own line ends."""
    text = source.text
    for span, replacement in sorted(edits, reverse=True):
        start = source.lines.offset(span.line, span.column)
        end = source.lines.offset(span.end_line, span.end_column)
        new = replacement.replace("\r\n", "\n").replace("\n", newline)
        text = text[:start] + new + text[end:]
    return text


def _edits(source: Source, report: Report, allowed: set[Applicability]) -> Iterator[list[tuple[Span, str]]]:
    """Edits of the first allowed fix of each finding, without those that touch earlier ones."""
    from gradguard.fixes import api

    taken: list[Span] = []
    for finding in report.findings:
        for plan in finding.fixes:
            if plan.applicability not in allowed:
                continue
            edits = api.edits(plan, source)
            if not edits:
                continue
            group = [(edit.span, edit.replacement) for edit in edits]
            if any(_touch(span, other) for span, _ in group for other in taken):
                break
            taken.extend(span for span, _ in group)
            yield group
            break


def _touch(one: Span, other: Span) -> bool:
    return (one.line, one.column) <= (other.end_line, other.end_column) and (other.line, other.column) <= (
        one.end_line,
        one.end_column,
    )


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
