"""Apply fixes to files: safe ones, or also those that may change numbers; each round is checked anew.

A file is read, fixed in memory until nothing more can be done, and replaced at once. Fixes that overlap wait
for the next round. A round counts only when fewer findings are left and the text still parses; a file that
does not parse is not fixed. A file that somebody else wrote meanwhile is left alone.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradguard.check.api import Report
from gradguard.cli.reading import Unreadable, decode, read_bytes, replace_file
from gradguard.cli.result import Edits
from gradguard.cli.worker import Checker, Job, edits_of
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
            _lines(self.before.text),
            _lines(self.after),
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
    count = 0
    for _ in range(ROUNDS):
        groups = [] if source.errors else list(_edits(source, report, allowed))
        # All at once; where that does not help, one alone may.
        for chosen in (groups, *([group] for group in groups if len(groups) > 1)):
            text = apply(source, [edit for group in chosen for edit in group], before.newline)
            if not chosen or text == source.text or not _parses(text):
                continue
            after, found = checker.text_checked(job, text)
            if not found.crash and len(found.findings) < len(report.findings):
                source, report, count = after, found, count + len(chosen)
                break
        else:
            break
    return Fixed(before, source.text, report, count)


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


def _lines(text: str) -> list[str]:
    """Lines with their ends, as patch tools count them."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _edits(source: Source, report: Report, allowed: set[Applicability]) -> Iterator[Edits]:
    """Edits of the first allowed fix of each finding, without those that touch earlier ones."""
    taken: list[Span] = []
    for finding in report.findings:
        for plan in finding.fixes:
            if plan.applicability not in allowed:
                continue
            group = edits_of(plan, source)
            if not group:
                continue
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
