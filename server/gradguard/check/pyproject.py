"""Settings from the text of a pyproject.toml, and which one is in force for a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from gradguard.check.catalogue import Catalogue, catalogue
from gradguard.check.parsing import Parsed, Problem, parse, shortened
from gradguard.findings import Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "pyproject.toml"

Read = Callable[[str], str | None]
"""Text of the file at a path, None where there is none. Never raises."""


@dataclass(frozen=True, slots=True)
class Project:
    """The project a file belongs to: the folder of its pyproject.toml and what that says."""

    root: str
    """Empty when no pyproject.toml speaks of gradguard."""
    path: str
    parsed: Parsed


NO_PROJECT = Project("", "", Parsed({}))


def find(folder: PurePath, read: Read, *, rules: Callable[[], Catalogue] = catalogue) -> Project:
    """The project of the files in `folder` (absolute): the nearest pyproject.toml with a `[tool.gradguard]` table.

    One without that table does not end the search: in a repository of several packages the settings of the
    whole stand at its root. A file that cannot be read as TOML ends it, with the problem.
    """
    for parent in (folder, *folder.parents):
        path = str(parent / NAME)
        text = read(path)
        if text is None:
            continue
        parsed = parse_text(text, path, rules=rules)
        if parsed is not None:
            return Project(str(parent), path, parsed)
    return NO_PROJECT


def parse_text(text: str, path: str, *, rules: Callable[[], Catalogue] = catalogue) -> Parsed | None:
    """The `[tool.gradguard]` table of a pyproject.toml; None when it has none."""
    if "gradguard" not in text:
        return None
    broken: tuple[Problem, ...] = ()
    try:
        data = _loaded(text)
    except ValueError as error:
        broken = (_toml_problem(path, text, str(error)),)
        try:  # what is wrong elsewhere in the file costs these settings nothing
            data = _loaded(_own_tables(text))
        except ValueError:
            data = {}
    tool = data.get("tool")
    table = tool.get("gradguard") if isinstance(tool, dict) else None
    if table is None:
        return Parsed({}, broken) if broken else None
    if not isinstance(table, dict):
        return Parsed({}, (*broken, Problem(path, "tool.gradguard", "expected a table")))
    parsed = parse(table, path, rules=rules)
    lines = _Lines(text) if parsed.problems else None
    placed = tuple(
        Problem(
            path,
            f"[tool.gradguard] {shortened(problem.key)}".rstrip(),
            problem.message,
            *(lines.place(problem.key, problem.message) if lines else ()),
        )
        for problem in parsed.problems
    )
    return Parsed(parsed.layer, (*broken, *placed))


def _own_tables(text: str) -> str:
    """What can be read of the tables of gradguard in a broken text, each of their settings by itself."""
    kept: list[str] = []
    header, item = "", ""

    def settle() -> None:
        """Keep the setting that ended here, if it can be read."""
        if item.strip():
            try:
                _loaded(f"{header}\n{item}")
            except ValueError:
                return
            kept.append(item)

    for line in text.split("\n"):
        table = _HEADER.match(line)
        if table is not None or _PAIR.match(line.strip()):
            settle()
            item = ""
        if table is not None:
            inside = table.group(1).replace(" ", "").startswith("tool.gradguard")
            header = line if inside else ""
            if inside:
                kept.append(line)
        elif header:
            item += line + "\n"
    settle()
    return "\n".join(kept)


_HEADER = re.compile(r"[ \t]*\[\[?([^\[\]\n]*)\]")

MOST_PARTS = 64
"""Parts of a dotted key: the time and the memory that tomllib takes for one grow with their square."""

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?)"""
_DOTTED = re.compile(rf"#.*|{_PART}(?:[ \t]*\.[ \t]*{_PART})*")


def _loaded(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    for found in _DOTTED.finditer(text):
        key = found.group()
        if key.count(".") < MOST_PARTS or key.startswith("#"):
            continue
        if len(re.findall(_PART, key)) > MOST_PARTS:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"A key of more than {MOST_PARTS} parts (at line {line}, column 1)")
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("Nested too deeply") from None
    except ValueError:
        raise ValueError("A number or a date that Python does not take") from None
    return data


def turned_off(text: str, rule: str) -> tuple[Span, str] | None:
    """Where to put what so that a rule is `off`; None where the levels are written inline, or the text is broken.

    rule: its name, which is looked for besides its code.
    """
    try:
        _loaded(text)
    except ValueError:
        return None
    info = catalogue().rule(rule)
    names = {rule, info.code} if info is not None else {rule}
    rows = text.split("\n")
    table, header = "", 0
    for number, row in enumerate(rows, 1):
        found = _HEADER.match(row)
        if found is not None:
            table = found.group(1).replace(" ", "")
            header = number if table == _LEVELS else header
            continue
        pair = _PAIR.match(row.strip())
        name = pair.group(1).strip("\"'") if pair is not None else ""
        if table == _LEVELS and name in names:
            row = row.rstrip("\r")
            return Span(number, 1, number, len(row) + 1), f'{name} = "off"'
        if table == "tool.gradguard" and name.split(".")[0] == "rules":
            return None
    if header:
        row = rows[header - 1].rstrip("\r")
        return Span(header, len(row) + 1, header, len(row) + 1), f'\n{rule} = "off"'
    last = rows[-1]
    gap = "" if not text else "\n" if not last else "\n\n"
    end = Span(len(rows), len(last) + 1, len(rows), len(last) + 1)
    return end, f'{gap}[{_LEVELS}]\n{rule} = "off"\n'


_LEVELS = "tool.gradguard.rules"


class _Lines:
    """The lines on which the keys of a text are set.

    Reads the usual ways of writing TOML: a table header and keys below it, bare or quoted. `rules.GG101` is
    looked for both as a dotted key and in the table `[tool.gradguard.rules]`.
    """

    def __init__(self, text: str) -> None:
        self._headers: dict[str, int] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._texts = text.split("\n")
        table = ""
        for number, line in enumerate(self._texts, 1):
            line = line.strip()
            if line.startswith("["):
                header = line[1:].partition("#")[0].rstrip()
                if header.endswith("]"):
                    table = header[:-1].strip().replace('"', "").replace("'", "")
                    self._headers.setdefault(table, number)
                continue
            pair = _PAIR.match(line)
            if pair is not None:
                self._keys.setdefault((table, pair.group(1).strip("\"'")), number)

    def of(self, key: str) -> int:
        """Line (from 1) on which a key of `[tool.gradguard]` is set, 0 when it cannot be told."""
        head, _, tail = key.partition(".")
        places = [
            self._headers.get(f"tool.gradguard.{key}"),
            self._keys.get(("tool.gradguard", key)),
            self._keys.get((f"tool.gradguard.{head}", tail)) if tail else None,
        ]
        return min((each for each in places if each), default=self._keys.get(("tool.gradguard", head), 0))

    def place(self, key: str, message: str) -> tuple[int, int, int, str]:
        """Line, first column, column behind the last, and text of the line where something wrong stands.

        That is what the message quotes, or else the key: its last part as it is written there.
        """
        line = self.of(key)
        if not line:
            return 0, 1, 1, ""
        quoted = _QUOTED.search(message)
        if quoted is not None:
            wanted = re.compile(f"[\"']{re.escape(quoted.group(1))}[\"']")
            for number in range(line, min(line + MOST_LINES, len(self._texts) + 1)):
                found = wanted.search(self._texts[number - 1])
                if found is not None:
                    return number, found.start() + 1, found.end() + 1, self._texts[number - 1]
                if number > line and _HEADER.match(self._texts[number - 1]):
                    break
        text = self._texts[line - 1].rstrip()
        for part in (key.partition(".")[2], key):
            at = text.find(part) if part else -1
            if at >= 0:
                return line, at + 1, at + len(part) + 1, text
        return line, len(text) - len(text.lstrip()) + 1, len(text) + 1, text


MOST_LINES = 1_000
"""Of one value, in which what is wrong is looked for."""
_QUOTED = re.compile(r'(?:unknown rule|found) "([^"]*)"')
_PAIR = re.compile(r"""("[^"]*"|'[^']*'|[\w.\-]+)\s*=""")


def _toml_problem(path: str, text: str, message: str) -> Problem:
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if at is None:
        return Problem(path, "", f"not valid TOML: {message}")
    told = message.replace(at.group(0), "").strip()
    line, column = int(at.group(1)), int(at.group(2))
    row = text.split("\n")[line - 1].rstrip()
    return Problem(path, "", f"not valid TOML: {told}", line, min(column, len(row) + 1), len(row) + 1, row)
