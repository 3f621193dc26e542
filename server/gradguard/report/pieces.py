"""Lines of a report as pieces of text with a style, how wide they are, and where they are broken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

Piece = tuple[str, str]
"""Text and the name of its style, empty for none."""

Line = list[Piece]

STYLES = {
    "error": "bold color(131)",
    "warning": "bold color(130)",
    "information": "bold color(63)",
    "hint": "bold color(30)",
    "path": "bold",
    "gutter": "color(243)",
    "related": "color(30)",
    "note": "color(28)",
    "dim": "color(243)",
}
"""Colours of the 256 that are read on black as well as on white; they do not hang on the terminal's own sixteen."""

CODE = {
    "Comment": "color(243)",
    "Keyword": "color(63)",
    "Literal.String": "color(28)",
    "Literal.Number": "color(130)",
    "Operator.Word": "color(63)",
}
"""Of programs, by kind of token. Nothing has a background: a box that is black on white hides what it frames."""

MARKDOWN = {
    "markdown.code": "bold color(30)",
    "markdown.code_block": "none",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.item.bullet": "color(243)",
    "markdown.item.number": "color(243)",
    "markdown.link": "color(63)",
    "markdown.link_url": "color(63)",
}

_WORDS = re.compile(r"\S+\s*|\s+")


def width_of(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    flat = sum(bool(unicodedata.combining(char)) for char in text)
    return len(text) + wide - flat


def wrapped(line: Line, width: int | None, indent: int, gutter: Line | None = None) -> Iterator[Line]:
    """The line, broken between words where it is wider than the terminal; what follows begins with the gutter and
    is indented. A word that is wider by itself stays whole, so that a path can be copied."""
    if width is None or sum(width_of(text) for text, _ in line) <= width:
        yield line
        return
    start: Line = [*(gutter or []), (" " * indent, "")]
    begun = sum(width_of(text) for text, _ in start)
    now: Line = []
    at = 0
    fresh = True
    for text, style in line:
        for word in _WORDS.findall(text):
            if not fresh and at + width_of(word.rstrip()) > width:
                yield _trimmed(now)
                now, at, fresh = [*start], begun, True
            if fresh and now[len(start) :] == [] and at == begun and not word.strip():
                continue
            now.append((word, style))
            at += width_of(word)
            fresh = fresh and not word.strip()
    yield _trimmed(now)


def _trimmed(line: Line) -> Line:
    """Neighbours of one style as one piece, without blanks at the end."""
    joined: Line = []
    for text, style in line:
        if joined and joined[-1][1] == style:
            joined[-1] = (joined[-1][0] + text, style)
        else:
            joined.append((text, style))
    if joined:
        joined[-1] = (joined[-1][0].rstrip(), joined[-1][1])
    return joined
