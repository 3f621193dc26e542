"""Taking text that does not parse apart, so that as few lines as possible are lost."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gradguard.source.scan import boundaries

_CLASS = re.compile(r"(?:(?:@[^\r\n]*|[ \t]*#[^\r\n]*|[ \t]*)(?:\r\n|\n|\r))*class[ \t]+(\w+)")
_BODY_LINE = re.compile(r"(?:\r\n|\n|\r)([ \t]+)(?=[^\s#])")
_DEFINITION = re.compile(
    r"(?:^|(?<=\n)|(?<=\r))(?:@[^\r\n]*(?:\r\n|\n|\r))*(?:async[ \t]+def|def|class)[ \t]", re.MULTILINE
)
"""The start of a definition, with the decorators that are a line each."""
_HEADER_LINES = 20


@dataclass(frozen=True, slots=True)
class Parts:
    """A class taken apart. Header and members together are its text."""

    header: str
    """Up to the first line of the body, decorators included."""
    indent: str
    """Of the body."""
    members: tuple[str, ...]


def regroup(text: str) -> Iterator[list[int]]:
    """Ways of taking a text apart, as offsets at which further pieces start; the mildest first.

    First every line at the margin starts a statement, whatever bracket is open. Then, as a triple quote that
    was just typed turns all strings below inside out, every definition does.
    """
    starts = list(boundaries(text, lenient=True))
    if starts:
        yield starts
    if '"""' in text or "'''" in text:
        starts = [match.start() for match in _DEFINITION.finditer(text) if match.start()]
        if starts:
            yield starts


def apart(text: str) -> Parts | None:
    """A class as header and members; None where the text is no class or has no body that can be made out."""
    match = _CLASS.match(text)
    if match is None:
        return None
    for line in islice(_BODY_LINE.finditer(text, match.end()), _HEADER_LINES):
        start, indent = line.start(1), line.group(1)
        if _parses(text[:start] + indent + "pass\n"):
            starts = [start, *boundaries(text, start, indent=indent)]
            ends = [*starts[1:], len(text)]
            return Parts(text[:start], indent, tuple(text[begin:end] for begin, end in zip(starts, ends)))
    return None


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True
