"""One version of one program (a document, or the cells of a notebook), and its places in the client's terms."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lsprotocol import types as lsp

from gradguard.findings import Finding, Span
from gradguard.ide.edits import Cell
from gradguard.lsp.documents import Document
from gradguard.source.lines import LineIndex
from gradguard.source.notebook import together
from gradguard.source.places import Places


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is analysed together. `starts`: the line (from 1) of the program at which each document begins.

    places: where the lines that were read for the program were typed; None where the two are the same. Spans and
    places are those of what is read.
    """

    key: str
    stamp: int
    path: str
    text: str
    documents: tuple[Document, ...]
    starts: tuple[int, ...]
    places: Places | None = None

    @property
    def notebook(self) -> bool:
        """Whether the documents are cells."""
        return self.key not in {each.uri for each in self.documents}

    def part(self, line: int) -> tuple[Document, int]:
        """The document that a line of the program lies in, and the program's line before it."""
        index = max(bisect_right(self.starts, line) - 1, 0)
        return self.documents[index], self.starts[index] - 1

    def shift(self, uri: str) -> int | None:
        """Lines of the program before a document; None when it is not part of it."""
        for each, start in zip(self.documents, self.starts):
            if each.uri == uri:
                return start - 1
        return None

    def cell(self, uri: str) -> Cell:
        """A document as the part of the program that fixes of it may change."""
        uris = [each.uri for each in self.documents]
        return Cell(self.starts, uris.index(uri) if uri in uris else 0)

    def typed(self, span: Span) -> Span | None:
        """Where a stretch was typed; None where what is read there was not."""
        return span if self.places is None else self.places.span(span)

    def read(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Findings where they were typed, at the places of what is read; not those in whose place something else is."""
        for finding in findings:
            span = self._read(finding.span)
            if span is None:
                continue
            places = [
                (each, self._read(each.span) if each.path == self.path else each.span)
                for each in finding.related
            ]
            related = [replace(each, span=place) for each, place in places if place is not None]
            yield replace(finding, span=span, related=tuple(related))

    def _read(self, span: Span) -> Span | None:
        if self.places is None:
            return span
        line, end_line = self.places.read(span.line), self.places.read(span.end_line)
        if line is None or end_line is None:
            return None
        found = Span(line, span.column, end_line, span.end_column)
        return found if self.places.span(found) == span else None

    def location(self, span: Span, encoding: str) -> lsp.Location | None:
        """A stretch of the program as the client knows it; never reaches out of its document.

        None where it was not typed.
        """
        typed = self.typed(span)
        return self.typed_location(typed, encoding) if typed is not None else None

    def typed_location(self, span: Span, encoding: str) -> lsp.Location:
        """The same for a stretch of what was typed."""
        document, before = self.part(span.line)
        return lsp.Location(document.uri, range_of(document.index, span, encoding, before))

    def place(self, uri: str, position: lsp.Position, encoding: str) -> tuple[int, int] | None:
        """Line and column in the program of a client's position.

        None for a document that is not part of it, and where something else is read than what stands there.
        """
        typed = self._typed_place(uri, position, encoding)
        if typed is None or self.places is None:
            return typed
        line = self.places.read(typed[0])
        return (line, typed[1]) if line is not None else None

    def _typed_place(self, uri: str, position: lsp.Position, encoding: str) -> tuple[int, int] | None:
        before = self.shift(uri)
        if before is None:
            return None
        document, _ = self.part(before + 1)
        line = min(position.line + 1, document.index.count)
        if position.line + 1 > line:
            return before + line, len(document.index.line(line)) + 1
        return before + line, document.index.column(line, position.character, encoding)

    def span(self, uri: str, where: lsp.Range, encoding: str) -> Span | None:
        """A client's range in the program: what is read for some of its lines; None where nothing is."""
        start, end = (
            self._typed_place(uri, where.start, encoding),
            self._typed_place(uri, where.end, encoding),
        )
        if start is None or end is None:
            return None
        start, end = min(start, end), max(start, end)
        if self.places is None:
            return Span(*start, *end)
        lines = self.places.read_between(start[0], end[0])
        if lines is None:
            return None
        # Where the first or last line is not read, the others are as a whole.
        column = start[1] if self.places.typed(lines[0]) == start[0] else 1
        end_column = end[1] if self.places.typed(lines[1]) == end[0] else sys.maxsize
        return Span(lines[0], column, lines[1], end_column)


def of_document(document: Document, stamp: int) -> Snapshot:
    """A document as a program."""
    return Snapshot(document.uri, stamp, document.path, document.text, (document,), (1,))


def of_cells(key: str, path: str, stamp: int, cells: tuple[Document, ...]) -> Snapshot:
    """The cells of a notebook as a program."""
    joined = together(cell.content.plain for cell in cells)
    return Snapshot(key, stamp, path, joined.text, cells, joined.starts)


def range_of(index: LineIndex, span: Span, encoding: str, before: int = 0) -> lsp.Range:
    """A stretch as a client's range, `before` lines higher; clamped to the text."""
    line, column = _within(index, span.line - before, span.column)
    end_line, end_column = _within(index, span.end_line - before, span.end_column)
    return lsp.Range(
        lsp.Position(line - 1, index.units(line, column, encoding)),
        lsp.Position(end_line - 1, index.units(end_line, end_column, encoding)),
    )


def _within(index: LineIndex, line: int, column: int) -> tuple[int, int]:
    if line > index.count:
        return index.count, len(index.line(index.count)) + 1
    return max(line, 1), column
