"""A baseline: the findings an old code base starts with, so that only new ones are reported.

Files are named relative to the baseline itself, so that it holds from whichever folder a run is started.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradguard.cli.fingerprints import fingerprints
from gradguard.cli.refused import Refused
from gradguard.disk.reading import RECORD_BYTES, Missing, Unreadable, read_utf8
from gradguard.disk.writing import replace_file
from gradguard.findings import Finding
from gradguard.report.findings import LineOf

FORMAT = 1


class BadBaseline(Refused):
    """The baseline cannot be read or written; the message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Marks of known findings."""

    path: Path
    marks: frozenset[str]

    def new(self, findings: Sequence[Finding], line_of: LineOf) -> list[int]:
        """Indices of the findings that are not known."""
        marks = fingerprints(findings, line_of, _named_from(self.path))
        return [index for index, mark in enumerate(marks) if mark not in self.marks]


def read(path: Path) -> Baseline:
    """Read a baseline. Raises BadBaseline."""
    try:
        data = json.loads(read_utf8(path, RECORD_BYTES))
        if data["gradguard-baseline"] != FORMAT:
            raise BadBaseline(f"{path}: written by another version of gradguard; write it anew")
        return Baseline(path, frozenset(str(each["mark"]) for each in data["findings"]))
    except Missing:
        raise BadBaseline(f"{path}: no such baseline; write it with --write-baseline {path}") from None
    except Unreadable as error:
        raise BadBaseline(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadBaseline(f"{path}: not a gradguard baseline") from None


def write(path: Path, findings: Sequence[Finding], line_of: LineOf) -> None:
    """Write the baseline of these findings, one a line so that its changes can be reviewed. Raises BadBaseline."""
    named = _named_from(path)
    marks = fingerprints(findings, line_of, named)
    rows = [
        json.dumps(
            {"file": named(each.path), "code": each.code, "line": each.span.line, "mark": mark},
            ensure_ascii=False,
        )
        for each, mark in zip(findings, marks)
    ]
    body = ",\n    ".join(rows)
    inside = f"\n    {body}\n  " if rows else ""
    text = f'{{\n  "gradguard-baseline": {FORMAT},\n  "findings": [{inside}]\n}}\n'
    try:
        replace_file(path, text.encode("utf-8", "backslashreplace"), project_links=False)
    except OSError as error:
        raise BadBaseline(f"{path}: {error.strerror}") from None


def _named_from(baseline: Path) -> Callable[[str], str]:
    folder = os.path.dirname(os.path.abspath(baseline))
    return lambda path: os.path.relpath(os.path.abspath(path), folder).replace(os.sep, "/")
