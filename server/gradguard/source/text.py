"""A source file as the analysis sees it: text, trees, and positions."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable

from gradguard.findings import Span
from gradguard.source.lines import LineIndex
from gradguard.source.piece import Chunk, ParseError, Piece
from gradguard.source.pieces import split

__all__ = ["ParseError", "Piece", "Source"]

BOM = "\ufeff"
WORD = "torch"


class Source:
    """Text of one file and what can be parsed of it. Building one never raises; it does not change afterwards.

    `tree` holds the statements of every piece that parses, at their true lines; for a piece that does not
    parse but did in `previous`, what it was then (within the lines of the piece). Nodes are shared with
    `previous` where the text is the same, and moved: `previous` must not be asked for places any more.
    """

    __slots__ = ("_code", "_indent", "_index", "_parsed", "_statements", "path", "text")

    def __init__(
        self, path: str, text: str, previous: Source | None = None, breaks: Iterable[int] = ()
    ) -> None:
        """`breaks`: lines at which a new cell of a notebook starts; nothing open reaches across them."""
        self.path = path
        self.text = text
        self._index = LineIndex(text)
        # A form feed takes the one column of the byte order mark and leaves the indentation at zero.
        self._code = "\f" + text[1:] if text.startswith(BOM) else text
        self._statements: dict[int, tuple[int, int]] | None = None
        self._indent: str | None = None
        # Of a file that another one imports, often nothing but the text is asked for; an edited one is parsed at
        # once, so that it does not keep its predecessors.
        self._parsed: _Parsed | None = None
        if previous is not None or breaks:
            offsets = frozenset(self._index.start(line) for line in breaks)
            self._parsed = _Parsed(split(self._code, previous.chunks if previous else (), offsets))

    def _parse(self) -> _Parsed:
        if self._parsed is None:
            self._parsed = _Parsed(split(self._code, (), frozenset()))
        return self._parsed

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Stretches of text that are split into pieces together."""
        return self._parse().chunks

    @property
    def errors(self) -> tuple[ParseError, ...]:
        """What does not parse, in order."""
        return self._parse().errors

    @property
    def tree(self) -> ast.Module:
        """The statements of the whole file."""
        return self._parse().tree

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What is parsed together: top-level statements, in order."""
        return tuple(piece for chunk in self.chunks for piece in chunk.pieces)

    @property
    def broken(self) -> tuple[tuple[int, int], ...]:
        """First and last line of each stretch that has no tree of its own."""
        return tuple((error.first, error.last) for error in self.errors)

    @property
    def lines(self) -> LineIndex:
        """For conversions between offsets, code points and other units."""
        return self._index

    @property
    def mentions_torch(self) -> bool:
        """False only where nothing here can be about torch."""
        return WORD in self.text

    def line(self, number: int) -> str:
        """Text of a line (from 1), without its line end."""
        return self._index.line(number)

    def is_broken(self, line: int) -> bool:
        """Whether this line belongs to a piece that does not parse."""
        return any(error.first <= line <= error.last for error in self.errors)

    def span(self, node: ast.AST) -> Span:
        """Span of a node that has a place, in code points from 1."""
        line: int = node.lineno  # type: ignore[attr-defined]
        end_line: int = node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self.column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self.column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def column(self, line: int, byte: int) -> int:
        """Column in code points from 1 of an `ast` column; clamped to the line."""
        text = self._index.line(line)
        if text.isascii():
            return min(byte, len(text)) + 1
        if line == 1 and text.startswith(BOM):
            # The tree was made from one byte where the text has the three of the byte order mark.
            byte += 2
        return self._index.column_of_byte(line, byte)

    @property
    def indent(self) -> str:
        """What the file indents a block by: as its first indented block; four spaces where there is none."""
        if self._indent is None:
            self._indent = _indent(self)
        return self._indent

    def slice(self, span: Span) -> str:
        """Text of a span."""
        return self.text[
            self._index.offset(span.line, span.column) : self._index.offset(span.end_line, span.end_column)
        ]

    def digest(self, node: ast.stmt) -> str:
        """Hash of the lines of a statement, decorators included: equal texts have equal digests."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        text = self.text[self._index.start(first) : self._index.start((node.end_lineno or node.lineno) + 1)]
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def statement_lines(self, line: int) -> tuple[int, int]:
        """First and last line of the innermost statement on a line; of a compound one, its head alone."""
        if self._statements is None:
            self._statements = _statement_lines(self.tree)
        return self._statements.get(line, (line, line))


def _indent(source: Source) -> str:
    for node in ast.walk(source.tree):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.stmt) or not isinstance(body, list) or not body:
            continue
        outer, inner = source.line(node.lineno), source.line(body[0].lineno)
        mine = inner[: len(inner) - len(inner.lstrip(" \t"))]
        theirs = outer[: len(outer) - len(outer.lstrip(" \t"))]
        if body[0].lineno != node.lineno and mine.startswith(theirs) and mine != theirs:
            return mine[len(theirs) :]
    return "    "


class _Parsed:
    __slots__ = ("chunks", "errors", "tree")

    def __init__(self, chunks: tuple[Chunk, ...]) -> None:
        self.chunks = chunks
        pieces = [piece for chunk in chunks for piece in chunk.pieces]
        self.errors: tuple[ParseError, ...] = tuple(error for piece in pieces for error in piece.errors)
        self.tree = ast.Module(
            body=[statement for piece in pieces for statement in piece.body], type_ignores=[]
        )


def _statement_lines(tree: ast.Module) -> dict[int, tuple[int, int]]:
    extents: list[tuple[int, int]] = []
    stack: list[ast.AST] = [tree]
    while stack:
        for child in ast.iter_child_nodes(stack.pop()):
            if isinstance(child, ast.expr):
                continue
            stack.append(child)
            if isinstance(child, ast.stmt):
                body = getattr(child, "body", None)
                last = child.end_lineno or child.lineno
                if isinstance(body, list) and body:
                    below = [
                        body[0].lineno,
                        *(each.lineno for each in getattr(body[0], "decorator_list", ())),
                    ]
                    last = max(child.lineno, min(below) - 1)
                extents.append((child.lineno, last))
    found: dict[int, tuple[int, int]] = {}
    # Wider ones first, so that an inner statement overwrites the head it stands in.
    for first, last in sorted(extents, key=lambda each: each[0] - each[1]):
        for line in range(first, last + 1):
            found[line] = (first, last)
    return found
