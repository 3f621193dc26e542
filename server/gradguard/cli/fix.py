"""Apply fixes to files: safe ones, or also those that may change numbers.

A file is read, fixed in memory until nothing more can be done, and replaced at once. A file that somebody else
wrote meanwhile is left alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradguard.check.api import Report
from gradguard.cli.worker import Checker, Job
from gradguard.disk.reading import Unreadable, decode, read_bytes
from gradguard.disk.writing import replace_file
from gradguard.ide import fixall
from gradguard.source.decode import Decoded, Undecodable
from gradguard.source.text import Source


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing made of a file."""

    before: Decoded
    after: str
    report: Report
    """For the text after."""
    kinds: tuple[str, ...]
    """Of the fixes that were made."""
    rounds: int

    @property
    def count(self) -> int:
        """Number of fixes that were made."""
        return len(self.kinds)

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
    source = Source(job.path, before.text)

    def check(source: Source) -> Report:
        return checker.source_checked(job, source)

    done = fixall.fixed(source, check(source), check, unsafe=unsafe)
    return Fixed(before, done.source.text, done.report, done.kinds, done.rounds)


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


def _lines(text: str) -> list[str]:
    """Lines with their ends, as patch tools count them."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
