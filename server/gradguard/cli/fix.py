"""Apply fixes to files: safe ones, or also those that may change numbers.

A file is read, fixed in memory until nothing more can be done, and replaced at once. A file that somebody else
wrote meanwhile is left alone.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gradguard.check.api import Report
from gradguard.check.catalogue import catalogue
from gradguard.check.engine import Wanted
from gradguard.check.selection import Selection, widened
from gradguard.cli.worker import Checker, Job, program
from gradguard.disk.reading import Unreadable, decode, read_bytes
from gradguard.disk.writing import replace_file
from gradguard.findings import Limit
from gradguard.ide import fixall
from gradguard.ide.edits import Cell
from gradguard.ide.trial import Check
from gradguard.source.decode import Decoded, Undecodable
from gradguard.source.ipynb import SUFFIX, merged, read_notebook
from gradguard.source.printable import printable, printable_lines
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
    refused: tuple[Limit, ...] = ()
    """What could have been fixed and was not, with the reason, at its place in the text after."""

    @property
    def count(self) -> int:
        """Number of fixes that were made."""
        return len(self.kinds)

    def diff(self, name: str) -> Iterator[str]:
        """Lines of a unified diff, with their ends; a name that cannot be printed is quoted as git does."""
        lines = difflib.unified_diff(
            _lines(self.before.text),
            _lines(self.after),
            _quoted(f"a/{name}"),
            _quoted(f"b/{name}"),
        )
        for line in lines:
            yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def for_readers(lines: Iterable[str]) -> Iterator[str]:
    """A diff as a terminal or a log is to have it: no line of a file is obeyed there."""
    for line in lines:
        ended = line.removesuffix("\n")
        kept = ended.removesuffix("\r")
        yield printable_lines(kept) + line[len(kept) :]


def fix(job: Job, checker: Checker, *, unsafe: bool) -> Fixed:
    """Fix one file in memory. Raises Unreadable."""
    before = decode(read_bytes(Path(job.path)) if job.data is None else job.data)

    # What a repair brings is seen, whatever was selected; what it is to repair, and what is said of it, is as selected.
    wide = replace(job, settings=widened(job.settings, catalogue()))
    wanted = Selection(job.settings, catalogue()).allows

    def check(source: Source) -> Report:
        return checker.source_checked(wide, source)

    def said(source: Source, report: Report) -> Report:
        if wide == job:
            return report
        return checker.source_checked(job, source).with_limits(report.limits)

    if job.path.endswith(SUFFIX):
        return _fix_notebook(job, before, check, said, wanted, unsafe=unsafe)
    source = Source(job.path, before.text)
    done = fixall.fixed(source, check(source), check, unsafe=unsafe, wanted=wanted)
    return Fixed(
        before, done.source.text, said(done.source, done.report), done.kinds, done.rounds, _refused(done)
    )


def _fix_notebook(
    job: Job,
    before: Decoded,
    check: Check,
    said: Callable[[Source, Report], Report],
    wanted: Wanted,
    *,
    unsafe: bool,
) -> Fixed:
    """Fix one cell after the other, each in what the ones before became. Raises Unreadable.

    Where a fix would cost a magic, its cell stays as it is.
    """
    source = program(job.path, before)
    if source is None:
        return Fixed(before, before.text, Report(), (), 0)
    notebook = read_notebook(before.text)
    report = check(source)
    cell = Cell(notebook.program.starts)
    texts: dict[int, str] = {}
    kinds: tuple[str, ...] = ()
    refused: tuple[Limit, ...] = ()
    rounds = 0
    for index, each in enumerate(notebook.cells):
        here = replace(cell, index=index)
        if not fixall.fixable(report, here.lines(source)) and not unsafe:
            continue
        done = fixall.fixed(source, report, check, unsafe=unsafe, cell=here, wanted=wanted)
        refused += _refused(done)
        start, end = done.cell.stretch(done.source)
        text = merged(each.text, done.source.text[start:end]) if done.kinds else None
        if text is not None:
            texts[index] = text
            source, report, cell = done.source, done.report, done.cell
            kinds, rounds = kinds + done.kinds, max(rounds, done.rounds)
    after = notebook.rewritten(texts)
    if read_notebook(after).program.text != source.text:
        raise Unreadable("not fixed: the notebook would not be the one that was checked")
    return Fixed(before, after, said(source, report), kinds, rounds, refused)


def _refused(done: fixall.Fixed) -> tuple[Limit, ...]:
    """Of each finding that is left, the first fix that was allowed, and what speaks against it."""
    first = {each.finding: each for each in reversed(done.refused)}
    return tuple(
        Limit(one.path, one.span, f"not fixed: {one.code}, {each.plan.title}: {each.why}")
        for one, each in first.items()
    )


def other_names(path: str) -> int:
    """How many other hard links a file has: they keep the old text, as what takes its place at once is another file."""
    try:
        return os.stat(path).st_nlink - 1
    except OSError:
        return 0


def write(path: str, fixed: Fixed) -> None:
    """Put the fixed text in the place of the file. Raises Unreadable when it changed since it was read."""
    target = Path(path)
    try:
        data = fixed.before.encode(fixed.after)
    except Undecodable as error:
        raise Unreadable(str(error)) from None
    if _belongs_to_another(target):
        raise Unreadable("cannot be written: it belongs to another user, who would lose it")
    if read_bytes(target) != fixed.before.data:
        raise Unreadable("changed while it was being fixed; left as it is")
    try:
        replace_file(target, data)
    except OSError as error:
        raise Unreadable(f"cannot be written: {error.strerror}") from None


def _belongs_to_another(path: Path) -> bool:
    """Whether a file would change hands if another took its place."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return False
    try:
        return path.stat().st_uid != os.geteuid()
    except OSError:
        return False


_ESCAPES = {"\n": r"\n", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def _quoted(name: str) -> str:
    r"""`"a/na\nme.py"` where a name cannot be written as it is: what git writes and reads, and patch reads."""
    if "##" not in name and all(map(_plain, name)):
        # Behind a blank, both look for a time unless a tab says where the name ends.
        return f"{name}\t" if " " in name else name
    return f'"{"".join(map(_escape, name))}"'


def _plain(char: str) -> bool:
    return char not in _ESCAPES and printable(char) == char and not "\ud800" <= char <= "\udfff"


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    # `##[name]` is a command of some builds wherever it stands.
    return char if _plain(char) and char != "#" else "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def _lines(text: str) -> list[str]:
    """Lines with their ends, as patch tools count them."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
