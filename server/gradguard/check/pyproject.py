"""Settings from the text of a pyproject.toml, and which one is in force for a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from gradguard.check.catalogue import Catalogue, catalogue
from gradguard.check.parsing import Parsed, Problem, parse

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
        if text is None or "gradguard" not in text:
            continue
        parsed = parse_text(text, path, rules=rules)
        if parsed is not None:
            return Project(str(parent), path, parsed)
    return NO_PROJECT


def parse_text(text: str, path: str, *, rules: Callable[[], Catalogue] = catalogue) -> Parsed | None:
    """The `[tool.gradguard]` table of a pyproject.toml; None when it has none."""
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Parsed({}, (_toml_problem(path, str(error)),))
    tool = data.get("tool")
    table = tool.get("gradguard") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        return Parsed({}, (Problem(path, "tool.gradguard", "expected a table"),))
    parsed = parse(table, path, rules=rules)
    placed = tuple(
        Problem(path, f"[tool.gradguard] {problem.key}", problem.message, line_of_key(text, problem.key))
        for problem in parsed.problems
    )
    return Parsed(parsed.layer, placed)


def line_of_key(text: str, key: str) -> int:
    """Line (from 1) on which a key of `[tool.gradguard]` is set, 0 when it cannot be told.

    Reads the usual ways of writing TOML: a table header and keys below it, bare or quoted. `rules.GG101` is
    looked for both as a dotted key and in the table `[tool.gradguard.rules]`.
    """
    head, _, tail = key.partition(".")
    wanted = {("tool.gradguard", key), ("tool.gradguard", head)}
    if tail:
        wanted.add((f"tool.gradguard.{head}", tail))
    best = 0
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$", line)
        if header:
            table = header.group(1).replace('"', "").replace("'", "")
            if table == f"tool.gradguard.{key}":
                return number
            continue
        pair = re.match(r"""\s*("[^"]*"|'[^']*'|[\w.\-]+)\s*=""", line)
        if pair is None:
            continue
        name = pair.group(1).strip("\"'")
        if (table, name) in wanted:
            if name != head or not tail:
                return number
            best = best or number
    return best


def _toml_problem(path: str, message: str) -> Problem:
    at = re.search(r"\(at line (\d+), column \d+\)", message)
    if at is None:
        return Problem(path, "", f"not valid TOML: {message}")
    text = message.replace(at.group(0), "").strip()
    return Problem(path, "", f"not valid TOML: {text}", int(at.group(1)))
