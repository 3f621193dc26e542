"""A notebook file as text: where the sources of its code cells stand in it, and the same file with other sources.

All else of the file, outputs and metadata and the way it is written, stays byte for byte what it is.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from gradguard.source.lines import LineIndex
from gradguard.source.notebook import Joined, join, plain

SUFFIX = ".ipynb"


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell. number: from 1, among all cells of the file. start, end: its `source` in the file's text."""

    number: int
    text: str
    start: int
    end: int
    strings: tuple[tuple[int, int, str], ...]
    """Start and end of each string that the source is made of, and what it says."""
    listed: bool
    """Whether the source is a list of lines."""

    @property
    def lines(self) -> LineIndex:
        """Its lines."""
        return LineIndex(self.text)


@dataclass(frozen=True, slots=True)
class Notebook:
    """The text of a file, its code cells, and the program that they are."""

    text: str
    cells: tuple[CodeCell, ...]
    program: Joined
    python: bool = True
    """Whether its language is Python, or is not said."""

    def rows(self, cell: CodeCell) -> tuple[int, ...]:
        """For each line of a cell, the line of the file that it begins on."""
        index = LineIndex(self.text)
        ends = list(accumulate(len(text) for _, _, text in cell.strings))
        found = []
        at = 0
        for line in _lines(cell.text) or [""]:
            which = next((number for number, end in enumerate(ends) if at < end), len(ends) - 1)
            found.append(index.position(cell.strings[which][0] if cell.strings else cell.start)[0])
            at += len(line)
        return tuple(found)

    def rewritten(self, texts: Mapping[int, str]) -> str:
        """The file with other texts for some code cells, by their index in `cells`."""
        parts: list[str] = []
        at = 0
        for index in sorted(texts):
            cell = self.cells[index]
            parts += self.text[at : cell.start], self._source(cell, texts[index])
            at = cell.end
        return "".join((*parts, self.text[at:]))

    def _source(self, cell: CodeCell, text: str) -> str:
        if not cell.listed:
            return self._string(text)
        known = {value: self.text[start:end] for start, end, value in cell.strings}
        strings = [known.get(line) or self._string(line) for line in _lines(text)]
        if not cell.strings or not strings:
            return f"[{', '.join(strings)}]"
        head = self.text[cell.start : cell.strings[0][0]]
        tail = self.text[cell.strings[-1][1] : cell.end]
        between = "," + head[1:]
        if len(cell.strings) > 1:
            between = self.text[cell.strings[0][1] : cell.strings[1][0]]
        return head + between.join(strings) + tail

    def _string(self, text: str) -> str:
        """As the file writes strings: what is not ASCII as it is, unless the file has nothing of that kind."""
        return json.dumps(text, ensure_ascii=self.text.isascii() and "\\u" in self.text)


def read_notebook(text: str) -> Notebook:
    """A notebook of the text of its file. Raises ValueError, naming what is wrong."""
    try:
        data = json.loads(text)
        found = dict(_cells(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a notebook: {error}") from None
    listed = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        raise ValueError("not a notebook: no list of cells")
    cells = []
    for number, cell in enumerate(listed):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise ValueError(
                f"not a notebook: the source of cell {number + 1} is no text and no list of texts"
            )
        at = found.get(number)
        if at is None:  # a cell without a source
            continue
        cells.append(CodeCell(number + 1, source, at.start, at.end, tuple(at.strings), at.listed))
    return Notebook(text, tuple(cells), join(cell.text for cell in cells), _python(data))


def merged(raw: str, after: str) -> str | None:
    """A cell with the lines that were changed in what is read of it; None where that would cost a magic.

    after: what is read of the cell, changed.
    """
    before = _lines(plain(raw))
    own, new = _lines(raw), _lines(after)
    if raw and not raw.endswith(("\n", "\r")) and new and new[-1].endswith(("\n", "\r")):
        new[-1] = new[-1].rstrip("\r\n")
    out: list[str] = []
    if len(own) != len(before):
        return None
    matcher = difflib.SequenceMatcher(None, before, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            out += own[i1:i2]
        elif own[i1:i2] == before[i1:i2] and not (i1 == 0 and raw.lstrip().startswith("%%")):
            out += new[j1:j2]
        else:
            return None
    return "".join(out)


@dataclass(slots=True)
class _Found:
    """Where the source of a cell stands."""

    start: int
    end: int
    listed: bool
    strings: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """An object or a list that is being read. at: the key or the index of what comes next in it."""

    start: int
    named: bool
    at: Any = 0
    wants_name: bool = True


def _cells(text: str) -> Iterator[tuple[int, _Found]]:
    """The sources of the cells of a text that is JSON, by index."""
    stack: list[_Open] = []
    source: _Found | None = None
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        start, sign = token.start(), token.group()
        at = token.end()
        where = [each.at for each in stack] if len(stack) in (3, 4) else []
        of_cell = bool(where) and where[0] == "cells" and where[2] == "source"
        if sign == '"':
            value, at = scanstring(text, at, True)
            top = stack[-1] if stack else None
            if top is not None and top.named and top.wants_name:
                top.at, top.wants_name = value, False
            elif of_cell and len(where) == 3:
                yield where[1], _Found(start, at, False, [(start, at, value)])
            elif of_cell and source is not None:
                source.strings.append((start, at, value))
        elif sign in "{[":
            if of_cell and len(where) == 3 and sign == "[":
                source = _Found(start, start, True)
            stack.append(_Open(start, sign == "{"))
        elif sign in "}]":
            stack.pop()
            if source is not None and len(stack) == 3:
                source.end = at
                yield stack[1].at, source
                source = None
        elif stack:  # a comma
            stack[-1].wants_name = True
            if not stack[-1].named:
                stack[-1].at += 1


_TOKEN = re.compile(r'["{}\[\],]')


def _python(data: Mapping[str, Any]) -> bool:
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(part)
        language = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text)
