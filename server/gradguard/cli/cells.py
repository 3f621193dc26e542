"""Places in notebooks: a report names the cell, and the line in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from gradguard.findings import Finding, Limit, Related, Span
from gradguard.ide.edits import Edits
from gradguard.source.ipynb import CodeCell, Notebook
from gradguard.source.lines import LineIndex

Placed = TypeVar("Placed", Finding, Related, Limit)


class InCell(str):
    """A path as shown, `train.ipynb:cell 3`, with what forms need that name files only.

    file: the path of the notebook as shown. cell: counted from 1, among all cells. rows: lines of the file, for each of
    the cell.
    """

    __slots__ = ("cell", "file", "rows", "source")

    file: str
    cell: int
    rows: tuple[int, ...]
    source: LineIndex

    def row(self, line: int) -> int:
        """The line of the file for a line of the cell."""
        return self.rows[min(max(line, 1), len(self.rows)) - 1]


def in_cell(shown: str, notebook: Notebook, cell: CodeCell) -> InCell:
    """The path of a cell of a notebook that is shown as `shown`."""
    path = InCell(f"{shown}:cell {cell.number}")
    path.file, path.cell, path.rows, path.source = shown, cell.number, notebook.rows(cell), cell.lines
    return path


class Cells:
    """The cells of one notebook, as a report names them."""

    def __init__(self, shown: str, notebook: Notebook) -> None:
        self._program = notebook.program
        self._paths = [in_cell(shown, notebook, cell) for cell in notebook.cells]

    def placed(self, what: Placed) -> Placed:
        """The same in its cell."""
        path, span = self.place(what.span)
        return replace(what, path=path, span=span)

    def place(self, span: Span) -> tuple[InCell, Span]:
        """The cell in which a stretch of the program begins, and the stretch in it."""
        at = self._program.cell(span.line)
        before = self._program.starts[at] - 1
        return self._paths[at], Span(
            span.line - before, span.column, max(span.end_line - before, 1), span.end_column
        )

    def edits(self, edits: Edits | None, span: Span) -> Edits | None:
        """Edits in the cell of a finding; None where they are not all there."""
        cell = self._program.cell(span.line)
        if edits is None or any(
            self._program.cell(each.line) != cell
            or self._program.cell(max(each.line, each.end_line - (each.end_column == 1))) != cell
            for each, _ in edits
        ):
            return None
        return tuple((self.place(each)[1], text) for each, text in edits)


def file_of(path: str) -> str:
    """The file that a path as shown is of."""
    return path.file if isinstance(path, InCell) else path


def file_lines(path: str, span: Span) -> tuple[int, int]:
    """First and last line of the file for a stretch as shown."""
    if isinstance(path, InCell):
        return path.row(span.line), path.row(span.end_line)
    return span.line, span.end_line


def said(path: str, span: Span) -> str:
    """What a message begins with where its place can only name a file: nothing for one that is no notebook."""
    return f"cell {path.cell}, line {span.line}: " if isinstance(path, InCell) else ""


def plain(what: Finding | Limit) -> dict[str, Any]:
    """As the JSON reports have it, with the cell where there is one."""
    out = _with_cell(what.plain(file_of), what.path)
    if isinstance(what, Finding):
        out["related"] = [_with_cell(item, each.path) for item, each in zip(out["related"], what.related)]
    return out


def _with_cell(item: dict[str, Any], path: str) -> dict[str, Any]:
    return {"file": item["file"], "cell": path.cell, **item} if isinstance(path, InCell) else item
