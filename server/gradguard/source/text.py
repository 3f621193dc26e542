"""A source file as the analysis sees it: text, trees, and positions."""

from __future__ import annotations

import ast
import copy
import hashlib
from bisect import bisect_right
from collections.abc import Iterable

from gradguard.findings import Span
from gradguard.source.lines import LineIndex
from gradguard.source.mending import Mended, mended
from gradguard.source.nodes import children
from gradguard.source.piece import Chunk, ParseError, Piece
from gradguard.source.pieces import Reading, read, settled, split
from gradguard.source.places import Places

__all__ = ["ParseError", "Piece", "Source"]

BOM = "\ufeff"
WORD = "torch"


class Source:
    """Text of one file and what can be parsed of it. Building one never raises; it does not change afterwards.

    `tree` holds the statements of every piece that parses, at their true lines. Nodes are shared with `previous`
    where the text is the same, and moved: `previous` must not be asked for places any more.
    """

    __slots__ = (
        "_breaks",
        "_cells",
        "_code",
        "_indent",
        "_index",
        "_parsed",
        "_places",
        "_statements",
        "path",
        "text",
        "typed",
    )

    def __init__(
        self, path: str, text: str, previous: Source | None = None, breaks: Iterable[int] = ()
    ) -> None:
        """`breaks`: lines at which a new cell of a notebook starts; nothing open reaches across them."""
        self.path = path
        self.text = self.typed = text
        self._index: LineIndex | None = None
        self._code = _code(text)
        self._statements: dict[int, dict[int, tuple[int, int]]] = {}
        self._indent: str | None = None
        self._places: Places | None = None
        self._cells = tuple(breaks)
        self._breaks = frozenset(self.lines.start(line) for line in self._cells)
        # Of a file that another one imports, often nothing but the text is asked for; an edited one is parsed at
        # once, so that it does not keep its predecessors.
        self._parsed: _Parsed | None = None
        if previous is not None or self._breaks:
            self._parsed = _Parsed(settled(self._reading(previous)))

    @classmethod
    def edited(
        cls, path: str, typed: str, previous: Source | None = None, breaks: Iterable[int] = ()
    ) -> Source:
        """What is read while a text is typed: each piece that does not parse is exchanged for the last text of it
        that did.

        A pure function of `typed` and `previous.text`, where `previous` is what was read for the version before.
        `text` is what is read, and everything here is about it; `place` leads back to what was typed. The two are
        the same where `typed` parses, and where there is nothing before. Reading is idempotent: the same text
        again is read in the same way.
        """
        if previous is None:
            return cls(path, typed, None, breaks)
        cells = tuple(breaks)
        if (path, typed, cells) == (previous.path, previous.typed, previous._cells):
            return previous
        source = cls(path, typed)
        source._cells = cells
        source._breaks = frozenset(source.lines.start(line) for line in cells)
        reading = source._reading(previous)
        found = mended(reading, source._breaks) if reading.torn else None
        if found is None:
            source._parsed = _Parsed(settled(reading))
        else:
            source._exchange(found, previous)
        return source

    def without_trees(self) -> Source:
        """The same, with trees that are made anew when they are asked for."""
        source = copy.copy(self)
        source._parsed, source._statements = None, {}
        return source

    def _reading(self, previous: Source | None) -> Reading:
        if previous is None:
            return read(self._code, (), self._breaks)
        return read(self._code, previous.chunks, self._breaks, aligned=not previous._breaks)

    def _exchange(self, found: Mended, previous: Source) -> None:
        """Be what is read instead."""
        self._places, self._breaks = found.places, found.breaks
        marked = self.typed.startswith(BOM) and found.text.startswith("\f")
        self.text = BOM + found.text[1:] if marked else found.text
        self._code = _code(self.text)
        if self.text == previous.text and self._breaks == previous._breaks:
            # What was typed lies in what is not read.
            self._index, self._parsed = previous._index, previous._parse()
            self._statements, self._indent = previous._statements, previous._indent
        else:
            self._index = None
            self._parsed = _Parsed(settled(self._reading(previous)))

    def _parse(self) -> _Parsed:
        if self._parsed is None:
            self._parsed = _Parsed(split(self._code, (), self._breaks))
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
        if self._index is None:
            self._index = LineIndex(self.text)
        return self._index

    @property
    def mentions_torch(self) -> bool:
        """False only where nothing here can be about torch."""
        return WORD in self.text

    def line(self, number: int) -> str:
        """Text of a line (from 1), without its line end."""
        return self.lines.line(number)

    def is_broken(self, line: int) -> bool:
        """Whether this line belongs to a piece that does not parse."""
        errors = self.errors
        at = bisect_right(errors, line, key=lambda error: error.first)
        return at > 0 and line <= errors[at - 1].last

    @property
    def whole(self) -> bool:
        """Whether all that was typed parses."""
        return self._places is None and not self.errors

    @property
    def places(self) -> Places | None:
        """Where the lines of `text` were typed; None where they are the lines of `typed`."""
        return self._places

    @property
    def breaks(self) -> tuple[int, ...]:
        """Lines at which a new cell of a notebook starts."""
        return tuple(self.lines.position(offset)[0] for offset in sorted(self._breaks))

    def place(self, span: Span) -> Span | None:
        """Where a stretch was typed; None where its lines are not what was typed."""
        return span if self._places is None else self._places.span(span)

    def alive(self, span: Span) -> bool:
        """Whether a stretch lies in what was typed and parses."""
        if any(self.is_broken(line) for line in (span.line, span.end_line)):
            return False
        return self._places is None or self._places.alive(span)

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
        text = self.lines.line(line)
        if text.isascii():
            return min(byte, len(text)) + 1
        if line == 1 and text.startswith(BOM):
            # The tree was made from one byte where the text has the three of the byte order mark.
            byte += 2
        return self.lines.column_of_byte(line, byte)

    @property
    def indent(self) -> str:
        """What the file indents a block by: as its first indented block; four spaces where there is none."""
        if self._indent is None:
            self._indent = _indent(self)
        return self._indent

    def slice(self, span: Span) -> str:
        """Text of a span."""
        return self.text[
            self.lines.offset(span.line, span.column) : self.lines.offset(span.end_line, span.end_column)
        ]

    def digest(self, node: ast.stmt) -> str:
        """Hash of the lines of a statement, decorators included: equal texts have equal digests."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        text = self.text[self.lines.start(first) : self.lines.start((node.end_lineno or node.lineno) + 1)]
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def statement_lines(self, line: int) -> tuple[int, int]:
        """First and last line of the innermost statement on a line; of a compound one, its head alone."""
        body = self.tree.body
        at = bisect_right(body, line, key=lambda each: each.lineno) - 1
        # Statements that share a line are looked at together.
        while at > 0 and (body[at - 1].end_lineno or 0) >= body[at].lineno:
            at -= 1
        if at < 0:
            return line, line
        if at not in self._statements:
            end = at + 1
            while end < len(body) and body[end].lineno <= (body[end - 1].end_lineno or 0):
                end += 1
            self._statements[at] = _statement_lines(body[at:end])
        return self._statements[at].get(line, (line, line))


def _code(text: str) -> str:
    """What is parsed: a form feed takes the one column of the byte order mark and leaves the indentation at zero."""
    return "\f" + text[1:] if text.startswith(BOM) else text


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


def _statement_lines(body: list[ast.stmt]) -> dict[int, tuple[int, int]]:
    extents: list[tuple[int, int]] = []
    stack: list[ast.AST] = [ast.Module(body, [])]
    while stack:
        for child in children(stack.pop()):
            if isinstance(child, ast.expr):
                continue
            stack.append(child)
            if isinstance(child, ast.stmt):
                inner = getattr(child, "body", None)
                last = child.end_lineno or child.lineno
                if isinstance(inner, list) and inner:
                    below = [
                        inner[0].lineno,
                        *(each.lineno for each in getattr(inner[0], "decorator_list", ())),
                    ]
                    last = max(child.lineno, min(below) - 1)
                extents.append((child.lineno, last))
    found: dict[int, tuple[int, int]] = {}
    # Wider ones first, so that an inner statement overwrites the head it stands in.
    for first, last in sorted(extents, key=lambda each: each[0] - each[1]):
        for line in range(first, last + 1):
            found[line] = (first, last)
    return found
