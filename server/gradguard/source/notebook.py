"""The cells of a notebook as one program, in order: gradients flow from one into the next.

What IPython understands and Python does not (`%magic`, `!shell`, `name?`, `%%cell` magics) becomes `pass` or
a comment of the same number of lines, so that every line keeps its place. Text in front of a magic stays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from gradguard.source.piece import count_lines
from gradguard.source.scan import string_lines

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_MAGIC = re.compile(r"(?P<indent>[ \t]*)(?:[%!]|\?{1,2}[\w%])")
_ASSIGNED = re.compile(r"(?P<left>[\w.,\[\] \t]+=[ \t]*)[%!](?!=)")
_HELP = re.compile(r"(?P<indent>[ \t]*)[%\w.*]+\?{1,2}[ \t]*$")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_PYTHON_MAGICS = frozenset(
    ("time", "timeit", "capture", "prun", "memit", "mprun", "python", "python3", "pypy")
)


@dataclass(frozen=True, slots=True)
class Joined:
    """The program of a notebook. `starts`: for each cell the line (from 1) of the program it begins at."""

    text: str
    starts: tuple[int, ...]

    def cell(self, line: int) -> int:
        """Index of the cell that a line of the program lies in."""
        return max(bisect_right(self.starts, line) - 1, 0)


def join(cells: Iterable[str]) -> Joined:
    """The cells as one program."""
    return together(map(plain, cells))


def together(cells: Iterable[str]) -> Joined:
    """Cells that are plain Python already as one program."""
    parts: list[str] = []
    starts: list[int] = []
    line = 1
    for text in cells:
        if not text.endswith(("\n", "\r")):
            text += "\n"
        starts.append(line)
        parts.append(text)
        line += count_lines(text)
    return Joined("".join(parts), tuple(starts))


def plain(cell: str) -> str:
    """A cell as Python: the same lines, without what only IPython runs."""
    if "%" not in cell and "!" not in cell and "?" not in cell:
        return cell
    magic = _CELL_MAGIC.match(cell.lstrip())
    if magic and magic.group(1) not in _PYTHON_MAGICS:
        return "".join("#" + _line_end(line) if line else line for line in _LINE.findall(cell))
    inside = string_lines(cell)
    out: list[str] = []
    continued = False
    for number, line in enumerate(_LINE.findall(cell)):
        text = line.rstrip("\r\n")
        if continued:
            continued = text.endswith("\\")
            out.append("#" + _line_end(line))
            continue
        replaced = None if number in inside else _without_magic(text)
        if replaced is None:
            out.append(line)
        else:
            continued = text.endswith("\\")
            out.append(replaced + _line_end(line))
    return "".join(out)


def _without_magic(text: str) -> str | None:
    if _CELL_MAGIC.match(text):
        return "#"
    magic = _MAGIC.match(text)
    if magic:
        return magic.group("indent") + "pass"
    assigned = _ASSIGNED.match(text)
    if assigned:
        return assigned.group("left") + "None"
    asked = _HELP.match(text)
    return asked.group("indent") + "pass" if asked else None


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
