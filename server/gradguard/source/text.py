"""A source file as the analysis sees it: text, tree, and positions."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradguard.findings import Span


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why a piece of the text has no tree."""

    line: int
    message: str


class Source:
    """Text of one file and what can be parsed of it; building one never raises."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.errors: tuple[ParseError, ...] = ()
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.tree = ast.Module(body=[], type_ignores=[])
            self.errors = (ParseError(getattr(error, "lineno", None) or 1, str(error)),)
        self._lines = text.split("\n")

    def line(self, number: int) -> str:
        """Text of a line (from 1), without its line end."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def span(self, node: ast.AST) -> Span:
        """Span of a node, in code points from 1."""
        line: int = node.lineno  # type: ignore[attr-defined]
        end_line: int = node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self._column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self._column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def _column(self, line: int, offset: int) -> int:
        text = self.line(line)
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1
