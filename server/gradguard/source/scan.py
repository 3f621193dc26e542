"""Where statements start, told by lexical means alone, so that one mistake does not hide the rest of a file.

The scan knows strings, comments, brackets and continued lines. For text that parses it is exact: every
boundary it yields is the start of a statement. Where a bracket stays open, the next line that starts with a
keyword no expression can contain (`def`, `import`, `return`, ...) ends it, which is what makes half-typed
code recoverable: only the piece with the open bracket is lost.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterator

NESTED_QUOTES = sys.version_info >= (3, 12)
"""Whether an f-string may contain its own quotes inside braces (PEP 701)."""

_TOKEN = re.compile(
    r"(?P<newline>\r\n|\n|\r)"
    r"|#[^\r\n]*"
    r"|\\(?:\r\n|\n|\r)"
    r"|(?P<open>[(\[{])"
    r"|(?P<close>[)\]}])"
    r'|(?P<triple>"""|\'\'\')'
    r"|(?P<quote>[\"'])",
)
_HARD = re.compile(
    r"(?:async[ \t]+def|def|class|import|from[ \t]+[\w.]+[ \t]+import|return|with|try|while|raise|assert|del"
    r"|global|nonlocal|pass|break|continue)\b"
)
"""Never inside an expression."""
_CONTINUES = re.compile(r"(?:elif|else|except|finally)\b|[)\]}]")
"""Belongs to the statement above."""
_DEFINITION = re.compile(r"(?:async[ \t]+def|def|class)\b")
_STRING_END = {quote: re.compile(r"\\(?:\r\n|.)|" + quote, re.DOTALL) for quote in ('"""', "'''")} | {
    quote: re.compile(r"\\(?:\r\n|.)|[\r\n]|" + quote, re.DOTALL) for quote in ('"', "'")
}
_FORMAT_PREFIX = re.compile(r"(?<![\w])(?:[fFtT][rR]?|[rR][fFtT])$")


def boundaries(
    text: str,
    begin: int = 0,
    *,
    indent: str = "",
    lenient: bool = False,
    breaks: Container[int] = (),
    nested_quotes: bool = NESTED_QUOTES,
) -> Iterator[int]:
    """Offsets at which statements of this indentation start, the first one being the first found after `begin`.

    `begin` must be the start of a line that starts a statement (or of the text). Comments and blank lines
    belong to the statement above. `lenient` ends an open bracket at any line of the indentation, and an open
    f-string at its line. `breaks` are offsets (starts of lines) at which a string or bracket ends in any case:
    the cells of a notebook.
    """
    nested_quotes = nested_quotes and not lenient
    depth = 0
    at = begin
    decorated = _decorates(text, begin, indent)
    size = len(text)
    search = _TOKEN.search
    while True:
        match = search(text, at)
        if match is None:
            return
        kind = match.lastgroup
        at = match.end()
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "newline":
            if at >= size:
                return
            forced = at in breaks
            if forced:
                depth = 0
            if not text.startswith(indent, at):
                continue
            first = at + len(indent)
            if first >= size or text[first] in " \t\f#\r\n\\":
                if not forced:
                    continue
            elif (depth and not (lenient and text[first] not in ")]}") and not _HARD.match(text, first)) or (
                _CONTINUES.match(text, first) and not forced
            ):
                continue
            depth = 0
            if decorated and not forced:
                if text[first] == "@":
                    continue
                decorated = False
                if _DEFINITION.match(text, first):
                    continue
            decorated = text[first : first + 1] == "@"
            yield at
        elif kind in ("triple", "quote"):
            at = string_end(text, match.start(), match.group(), nested_quotes, breaks)


def string_end(
    text: str, start: int, quote: str, nested_quotes: bool = NESTED_QUOTES, breaks: Container[int] = ()
) -> int:
    """Offset behind the string that opens at `start`; an unclosed one ends at its line or at the text's end."""
    at = start + len(quote)
    if nested_quotes and _FORMAT_PREFIX.search(text, max(start - 2, 0), start):
        return _format_end(text, at, quote)
    pattern = _STRING_END[quote]
    while True:
        match = pattern.search(text, at)
        if match is None:
            return _first_break(text, start, len(text), breaks)
        found = match.group()
        if found == quote:
            return _first_break(text, start, match.end(), breaks)
        if found in ("\n", "\r"):
            return match.start()
        at = match.end()


def _first_break(text: str, start: int, end: int, breaks: Container[int]) -> int:
    """Where a string stops that would run from `start` to `end` across the start of a notebook cell."""
    if not breaks:
        return end
    at = start
    while True:
        at = text.find("\n", at, end)
        if at < 0:
            return end
        if at + 1 in breaks:
            return at
        at += 1


def _decorates(text: str, at: int, indent: str) -> bool:
    return text.startswith(indent + "@", at)


def _format_end(text: str, at: int, quote: str) -> int:
    """End of an f-string whose expressions may contain strings with the same quotes."""
    size = len(text)
    single = len(quote) == 1
    while at < size:
        char = text[at]
        if text.startswith(quote, at):
            return at + len(quote)
        if char == "\\":
            at += 2
        elif single and char in "\r\n":
            return at
        elif text.startswith(("{{", "}}"), at):
            at += 2
        elif char == "{":
            at = _replacement_end(text, at + 1, quote)
        else:
            at += 1
    return size


def _replacement_end(text: str, at: int, quote: str) -> int:
    """End of a replacement field `{expression!r:spec}`, from behind its opening brace; it may span lines."""
    size = len(text)
    depth = 0
    while at < size:
        char = text[at]
        if char in "([{":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "}":
            if depth <= 0:
                return at + 1
            depth -= 1
        elif char == ":" and depth == 0:
            return _spec_end(text, at + 1, quote)
        elif char in "\"'":
            inner = text[at : at + 3] if text[at : at + 3] in ('"""', "'''") else char
            at = string_end(text, at, inner, True)
            continue
        at += 1
    return size


def _spec_end(text: str, at: int, quote: str) -> int:
    size = len(text)
    while at < size:
        char = text[at]
        if char == "}":
            return at + 1
        if char == "{":
            at = _replacement_end(text, at + 1, quote)
        elif text.startswith(quote, at) or (len(quote) == 1 and char in "\r\n"):
            return at
        else:
            at += 1
    return size


def string_lines(text: str) -> set[int]:
    """Numbers (from 0) of lines that start inside a string."""
    inside: set[int] = set()
    at = line = 0
    while (match := _STRING.search(text, at)) is not None:
        line += text.count("\n", at, match.start())
        at = match.end()
        if not match.group().startswith("#"):
            at = string_end(text, match.start(), match.group())
            first = line + 1
            line += text.count("\n", match.start(), at)
            inside.update(range(first, line + 1))
    return inside


_STRING = re.compile(r"#[^\r\n]*|\"\"\"|'''|[\"']")
