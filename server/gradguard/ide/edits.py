"""The edits of fixes as the faces of gradguard want them: plain, bounded, and put into a text."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from gradguard.findings import FixPlan, Limit, Span, internal_error, traceback_of
from gradguard.fixes.extent import cost
from gradguard.source.text import Source

Edits = tuple[tuple[Span, str], ...]
"""Replacements in one text."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The part of a program that fixes may change: all of it, or one cell of a notebook.

    starts: the line at which each cell begins.
    """

    starts: tuple[int, ...] = (1,)
    index: int = 0

    def lines(self, source: Source) -> range:
        """Its lines."""
        behind = self.starts[self.index + 1 :]
        return range(self.starts[self.index], behind[0] if behind else source.lines.count + 1)

    def stretch(self, source: Source) -> tuple[int, int]:
        """Where its text starts and ends in the program's. The line end behind a cell is none of its own."""
        lines = self.lines(source)
        start, end = source.lines.start(lines.start), source.lines.start(lines.stop)
        if len(self.starts) > 1 and source.text[start:end].endswith("\n"):
            end -= 1
        return start, end

    def grown(self, lines: int) -> Cell:
        """The same cell with more lines in it."""
        until = self.index + 1
        return replace(self, starts=(*self.starts[:until], *(start + lines for start in self.starts[until:])))


def edits_of(plan: FixPlan, source: Source, faults: list[Limit] | None = None) -> Edits | None:
    """The edits of a fix in the file it is for; None when it cannot be done.

    faults: where to tell a fault, which costs the fix; without it the fault is raised.
    """
    # Loads libcst, which costs more than everything else at start-up.
    from gradguard.fixes import api

    try:
        edits = api.edits(plan, source)
    except Exception as error:
        if faults is None:
            raise
        at = Span(plan.span.line, plan.span.column, plan.span.line, plan.span.column)
        message = f"a fix cannot be written: {internal_error(error)}"
        faults.append(Limit(source.path, at, message, traceback_of(error)))
        return None
    return tuple((edit.span, edit.replacement) for edit in edits) if edits else None


MOST_TEXT = 2_000_000
"""Characters of a file that are read again and again for its fixes: several thousand of them, unless its lines are very long."""


class Writer:
    """Writes the fixes of a file, up to a bound; what is not written is told in `limits`."""

    def __init__(self) -> None:
        self.limits: list[Limit] = []
        self._left = MOST_TEXT

    def edits(self, plan: FixPlan, source: Source) -> Edits | None:
        """As `edits_of`; None also where all fixes together take too long."""
        if self._left > 0:
            self._left -= cost(plan, source)
            if self._left <= 0:
                message = "fixes are written in part: there are too many, or they are in lines too long"
                self.limits.append(Limit(source.path, Span(1, 1, 1, 1), message))
        return edits_of(plan, source, self.limits) if self._left > 0 else None


def applied(source: Source, edits: Edits | list[tuple[Span, str]]) -> str:
    """The text with these replacements, each once, in the file's own line ends.

    They do not overlap; what several insert at one place comes in their order.
    """
    line_end = source.lines.line_end
    parts: list[str] = []
    at = 0
    for span, replacement in sorted(dict.fromkeys(edits), key=lambda each: each[0]):
        start = source.lines.offset(span.line, span.column)
        parts += source.text[at:start], replacement.replace("\r\n", "\n").replace("\n", line_end)
        at = source.lines.offset(span.end_line, span.end_column)
    return "".join((*parts, source.text[at:]))


def parses(text: str) -> bool:
    """Whether Python reads a text."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
