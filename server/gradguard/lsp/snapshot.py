"""One version of one program (a document, or the cells of a notebook), and its places in the client's terms."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from lsprotocol import types as lsp

from gradguard.findings import Span
from gradguard.ide.fixall import Cell
from gradguard.lsp.documents import Document
from gradguard.source.lines import LineIndex
from gradguard.source.notebook import together


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is analysed together. `starts`: the line (from 1) of the program at which each document begins."""

    key: str
    stamp: int
    path: str
    text: str
    documents: tuple[Document, ...]
    starts: tuple[int, ...]

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

    def location(self, span: Span, encoding: str) -> lsp.Location:
        """A stretch of the program as the client knows it; never reaches out of its document."""
        document, before = self.part(span.line)
        return lsp.Location(document.uri, range_of(document.index, span, encoding, before))

    def place(self, uri: str, position: lsp.Position, encoding: str) -> tuple[int, int] | None:
        """Line and column in the program of a client's position; None for a document that is not part of it."""
        before = self.shift(uri)
        if before is None:
            return None
        document, _ = self.part(before + 1)
        line = min(position.line + 1, document.index.count)
        if position.line + 1 > line:
            return before + line, len(document.index.line(line)) + 1
        return before + line, document.index.column(line, position.character, encoding)

    def span(self, uri: str, where: lsp.Range, encoding: str) -> Span | None:
        """A client's range in the program."""
        start, end = self.place(uri, where.start, encoding), self.place(uri, where.end, encoding)
        if start is None or end is None:
            return None
        return Span(*min(start, end), *max(start, end))


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
