"""What a fix does to a text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradguard.findings import Span
from gradguard.source.lines import LineIndex
from gradguard.source.text import Source


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A stretch of a text and what takes its place."""

    span: Span
    replacement: str


def changes(index: LineIndex, start: int, end: int, new: str) -> tuple[Edit, ...]:
    """The smallest edits that make a text from `start` to `end`, where lines begin and end, read `new`."""
    before, after = lines(index.text[start:end]), lines(new)
    edits: list[Edit] = []
    at = [0]
    for line in before:
        at.append(at[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            edits.append(_trimmed(index, start + at[i1], "".join(before[i1:i2]), "".join(after[j1:j2])))
    return tuple(edits)


def lines(text: str) -> list[str]:
    """Lines with their ends, as Python counts them (`str.splitlines` ends lines at other characters too)."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text)


def _trimmed(index: LineIndex, offset: int, old: str, new: str) -> Edit:
    """One replacement without the ends that both texts share; never between the halves of a line end."""
    lead = 0
    while lead < min(len(old), len(new)) and old[lead] == new[lead]:
        lead += 1
    if old[lead - 1 : lead] == "\r":
        lead -= 1
    tail = 0
    while tail < min(len(old), len(new)) - lead and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if tail and old[len(old) - tail] == "\n" and old[: len(old) - tail].endswith("\r"):
        tail -= 1
    stop = len(old) - tail
    line, column = index.position(offset + lead)
    end_line, end_column = index.position(offset + stop)
    return Edit(Span(line, column, end_line, end_column), new[lead : len(new) - tail])


def applied(source: Source, edits: Iterable[Edit]) -> str:
    """The text with these edits, which must not overlap."""
    text = source.text
    for edit in sorted(edits, reverse=True):
        start = source.lines.offset(edit.span.line, edit.span.column)
        end = source.lines.offset(edit.span.end_line, edit.span.end_column)
        text = text[:start] + edit.replacement + text[end:]
    return text


def collide(one: Span, other: Span) -> bool:
    """Whether two stretches share text, or begin at the same place."""
    start = max((one.line, one.column), (other.line, other.column))
    end = min((one.end_line, one.end_column), (other.end_line, other.end_column))
    return start < end or (one.line, one.column) == (other.line, other.column)
