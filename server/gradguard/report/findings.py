"""One finding with its lines of source.

    train.py:14:5: error GG101 inplace-on-saved-tensor: y.add_() overwrites y, which sigmoid saved
        |
     12 | y = torch.sigmoid(x)
        |     ---------------- saved here by sigmoid
     14 | y.add_(1)
        | ^^^^^^^^^
        --> loop.py:3
      3 | step(x).sum().backward()
        | ------------------------ backward needs it here
        = fix: write y = y + 1 (safe)

In a terminal everything keeps to its width: words are wrapped, and of a long line of source the part around the mark is
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gradguard.findings import Applicability, Finding, Span
from gradguard.report.pieces import Line, width_of, wrapped
from gradguard.report.words import Words
from gradguard.source.printable import printable

LineOf = Callable[[str, int], str]
"""Text of a line (from 1) of the file at a path as shown; empty when it cannot be had."""

TAB = "    "
LONGEST = 160
"""Columns of a source line that are shown where no terminal says how wide it is."""
NARROWEST = 40
"""Columns below which nothing is wrapped any further."""
MEASURED = 4 * LONGEST
"""Characters of a line around a mark that are looked at: some take no column."""
CUT = "..."

_HOW = {
    Applicability.SAFE: "safe",
    Applicability.UNSAFE: "unsafe",
    Applicability.MANUAL: "manual",
}


def finding_lines(
    finding: Finding, line_of: LineOf, words: Words, width: int | None, *, fixes: bool = True
) -> Iterator[Line]:
    """The lines of a finding. width: that of the terminal, None where there is none."""
    width = None if width is None else max(width, NARROWEST)
    severity = finding.severity.value
    head: Line = [
        (f"{finding.path}:{finding.span.line}:{finding.span.column}: ", "path"),
        (words.text(severity), severity),
        (f" {finding.code} ", severity),
        (f"{finding.name}: ", ""),
        (words.say(finding.message), ""),
    ]
    yield from wrapped(head, width, 4)
    marks = [
        _Mark(finding.path, finding.span, "", severity, "^"),
        *(_Mark(each.path, each.span, words.say(each.message), "related", "-") for each in finding.related),
    ]
    own = sorted((each for each in marks if each.path == finding.path), key=lambda mark: mark.order)
    others = [each for each in marks if each.path != finding.path]
    digits = max(len(str(mark.span.line)) for mark in marks)
    margin = _Margin(digits, width)
    if any(line_of(finding.path, mark.span.line).strip() for mark in own):
        yield margin.bar()
        yield from margin.lines(own, line_of)
    previous = finding.path
    for mark in others:
        source = line_of(mark.path, mark.span.line)
        if source.strip():
            if mark.path != previous:
                yield margin.sign("--> ", [(f"{mark.path}:{mark.span.line}", "path")])
            yield from margin.lines([mark], line_of)
            previous = mark.path
        else:
            yield from margin.note([(f"{mark.path}:{mark.span.line}: ", ""), (mark.message, "related")])
    for note in finding.notes:
        for part in words.say(note).split("\n"):
            yield from margin.note([(part, "")])
    for fix in finding.fixes if fixes else ():
        title = words.text("fix", title=words.say(fix.title))
        yield from margin.note([(title, "note"), (f" ({words.text(_HOW[fix.applicability])})", "dim")])


@dataclass(frozen=True, slots=True)
class _Mark:
    path: str
    span: Span
    message: str
    style: str
    sign: str

    @property
    def order(self) -> tuple[int, bool, int]:
        return self.span.line, self.sign != "^", self.span.column


@dataclass(frozen=True, slots=True)
class _Margin:
    """What stands left of the source: as wide as the longest number of a line."""

    digits: int
    width: int | None

    @property
    def room(self) -> int:
        """Columns of source."""
        return LONGEST if self.width is None else max(self.width - self.digits - 5, NARROWEST // 2)

    def bar(self) -> Line:
        return [(" " * (self.digits + 3) + "|", "gutter")]

    def sign(self, sign: str, text: Line) -> Line:
        return [(" " * (self.digits + 3) + sign, "gutter"), *text]

    def note(self, text: Line) -> Iterator[Line]:
        yield from wrapped(self.sign("= ", text), self.width, self.digits + 5)

    def lines(self, marks: list[_Mark], line_of: LineOf) -> Iterator[Line]:
        """Lines of a file with what is marked in them. A line that is too long for all its marks is shown again."""
        previous = 0
        part: _Part | None = None
        for mark in marks:
            number = mark.span.line
            if previous and number > previous + 1:
                yield [(" " * (self.digits + 1) + "...", "gutter")]
            if number != previous or part is None or not part.holds(mark):
                part = _Part.around(mark, line_of(mark.path, number), self.room)
                yield [(f"  {number:>{self.digits}} ", "gutter"), ("| ", "gutter"), (part.shown, "")]
            previous = number
            yield from self._underline(mark, part)

    def _underline(self, mark: _Mark, part: _Part) -> Iterator[Line]:
        before, length = part.columns(mark)
        under: Line = [*self.bar(), (" ", ""), (" " * before, ""), (mark.sign * length, mark.style)]
        if not mark.message:
            yield under
            return
        told = f" {mark.message}"
        if self.width is None or before + length + width_of(told) <= self.room:
            yield [*under, (told, mark.style)]
            return
        yield under
        indent = min(before, self.room // 3)
        below: Line = [*self.bar(), (" " * (indent + 1), ""), (mark.message, mark.style)]
        yield from wrapped(below, self.width, indent + 1, self.bar())


@dataclass(frozen=True, slots=True)
class _Part:
    """What is shown of a line: all of it where there is room, else the part around a mark."""

    text: str
    begin: int
    end: int
    """Characters from begin to before end."""

    @classmethod
    def around(cls, mark: _Mark, text: str, room: int) -> _Part:
        start = min(mark.span.column - 1, len(text))
        # Of a long line only a stretch is looked at: what is shown fits into it.
        low, high = max(0, start - MEASURED), min(len(text), start + MEASURED)
        near = text[low:high].rstrip()
        high = min(high, max(low + len(near), start))
        if not low and high >= len(text.rstrip()) and width_of(_show(near)) <= room:
            return cls(text, 0, max(high, start))
        begin = _back(text, start, low, room // 3)
        end = _ahead(text, begin, high, room - 2 * len(CUT))
        if end == high:
            begin = _back(text, end, low, room - 2 * len(CUT))
        return cls(text, begin if begin > len(CUT) else 0, end)

    @property
    def shown(self) -> str:
        rest = self.text[self.end : self.end + MEASURED].strip()
        return CUT * bool(self.begin) + _show(self.text[self.begin : self.end].rstrip()) + CUT * bool(rest)

    def holds(self, mark: _Mark) -> bool:
        """Whether all of a mark is shown."""
        start, end = self._range(mark)
        return self.begin <= start and end <= self.end

    def columns(self, mark: _Mark) -> tuple[int, int]:
        """Columns before a mark, and columns that are marked."""
        start, end = self._range(mark)
        before = len(CUT) * bool(self.begin) + width_of(_show(self.text[self.begin : start]))
        return before, max(1, width_of(_show(self.text[start : min(end, self.end)])))

    def _range(self, mark: _Mark) -> tuple[int, int]:
        span = mark.span
        end = span.end_column - 1 if span.end_line == span.line else len(self.text.rstrip())
        return min(span.column - 1, len(self.text)), end


def _back(text: str, start: int, least: int, room: int) -> int:
    """Where a stretch begins that ends before a place and has so many columns."""
    at = start
    while at > least:
        room -= width_of(_show(text[at - 1]))
        if room < 0:
            break
        at -= 1
    return at


def _ahead(text: str, start: int, most: int, room: int) -> int:
    """Where a stretch ends that begins at a place and has so many columns."""
    at = start
    while at < most:
        room -= width_of(_show(text[at]))
        if room < 0:
            break
        at += 1
    return at


def _show(text: str) -> str:
    return printable(text.replace("\t", TAB))
