"""Trees at other lines: moved with their text."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from gradguard.source.piece import Chunk, ParseError, Piece

_LINE_NAMED = re.compile(r"(\bline )(\d+)")


def moved(chunk: Chunk, lines: int, offset: int) -> Chunk:
    """The same text further down (or up), its nodes with it."""
    if not lines:
        return chunk if not offset else replace(chunk, offset=chunk.offset + offset)
    pieces = tuple(moved_piece(piece, lines) for piece in chunk.pieces)
    return replace(chunk, line=chunk.line + lines, offset=chunk.offset + offset, pieces=pieces)


def moved_piece(piece: Piece, lines: int) -> Piece:
    if not lines:
        return piece
    for statement in piece.body:
        _move(statement, lines)
    return _at(piece, lines)


def _at(piece: Piece, lines: int) -> Piece:
    """The piece with other line numbers; its nodes are moved already."""
    return replace(
        piece,
        line=piece.line + lines,
        errors=tuple(_moved_error(error, lines) for error in piece.errors),
        members=tuple(_at(member, lines) for member in piece.members),
    )


def _moved_error(error: ParseError, lines: int) -> ParseError:
    # The parser names other lines in its messages: "'(' was never closed on line 3".
    message = _LINE_NAMED.sub(lambda found: f"{found.group(1)}{int(found.group(2)) + lines}", error.message)
    return ParseError(error.line + lines, message, error.first + lines, error.last + lines)


def _move(statement: ast.stmt, lines: int) -> None:
    for node in _placed(statement):
        node.lineno += lines
        if node.end_lineno is not None:
            node.end_lineno += lines


def _placed(statement: ast.stmt) -> list[ast.expr]:
    """The nodes of a statement that have a place, remembered with it: walking costs far more than moving."""
    if isinstance(statement, ast.ClassDef):
        # Its body may be other members' nodes, each of which remembers its own.
        own: list[ast.AST] = [*statement.bases, *statement.keywords, *statement.decorator_list]
        own += getattr(statement, "type_params", ())
        found: list[Any] = [statement]
        for part in own:
            found += [node for node in ast.walk(part) if hasattr(node, "lineno")]
        for inner in statement.body:
            found += _placed(inner)
        return found
    known: list[ast.expr] | None = getattr(statement, "_gradguard_placed", None)
    if known is None:
        known = [node for node in ast.walk(statement) if hasattr(node, "lineno")]  # type: ignore[misc]
        statement._gradguard_placed = known  # type: ignore[attr-defined]
    return known
