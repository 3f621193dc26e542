"""Findings that the runtime monitor saw, from the files it leaves in workspace folders."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from gradguard.disk.reading import Missing, Unreadable
from gradguard.findings import Certainty, Finding, Related, Severity, Span
from gradguard.lsp.disk_calls import DiskCalls, Hangs

log = logging.getLogger(__name__)

NAME = os.path.join(".gradguard", "last-run.json")
MAX_BYTES = 16_000_000
SHOWN = 1000
"""Findings of one file that are shown."""
RELATED = 50
"""Related places of one finding that are."""
MOST = 1_000_000_000
"""Above every line and column."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What runs left: findings by file, and what the files' texts hashed to."""

    findings: dict[str, list[Finding]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)


def read_runs(folders: Iterable[str], disk: DiskCalls) -> Runs:
    """Read the last run of each folder."""
    runs = Runs()
    for folder in folders:
        data = _read(os.path.join(folder, NAME), disk)
        if data is None:
            continue
        runs.hashes.update(_hashes(data, folder))
        found = data.get("findings")
        odd = more = 0
        for entry in found if isinstance(found, list) else ():
            finding = _finding(entry, folder)
            here = runs.findings.setdefault(finding.path, []) if finding else []
            if finding is None:
                odd += 1
            elif len(here) == SHOWN:
                more += 1
            else:
                here.append(finding)
        if odd or more:
            log.warning(
                "the last run of %s: %d findings cannot be understood, and %d are too many for their file",
                folder, odd, more,
            )  # fmt: skip
    return runs


class Observed:
    """Observed findings by file. Those of a file that changed since the run are not shown: their lines moved."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._checked: dict[str, tuple[str, bool]] = {}

    def take(self, runs: Runs) -> bool:
        """Show these runs from now on. Whether anything changed."""
        changed = runs != self._runs
        self._runs = runs
        self._checked.clear()
        return changed

    def findings(self, path: str, text: str) -> Iterable[Finding]:
        """What was observed in a file, if its text is the one that ran."""
        found = self._runs.findings.get(path)
        if not found:
            return ()
        checked = self._checked.get(path)
        if checked is None or checked[0] != text:
            wanted = self._runs.hashes.get(path)
            same = (
                wanted is not None
                and wanted == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            )
            checked = self._checked[path] = (text, same)
        return found if checked[1] else ()


def _read(path: str, disk: DiskCalls) -> dict[str, Any] | None:
    try:
        data = json.loads(disk.utf8(path, MAX_BYTES))
    except (Missing, Hangs):  # who hangs is told by itself
        return None
    except (Unreadable, ValueError, RecursionError) as error:
        log.warning("%s cannot be read: %s", path, error)
        return None
    return data if isinstance(data, dict) else None


def _hashes(data: dict[str, Any], folder: str) -> dict[str, str]:
    files = data.get("files")
    if not isinstance(files, dict):
        return {}
    return {
        os.path.normpath(os.path.join(folder, path)): digest
        for path, digest in files.items()
        if isinstance(path, str) and isinstance(digest, str)
    }


def _finding(entry: Any, folder: str) -> Finding | None:
    try:
        related = tuple(
            Related(_path(each, folder), _span(each), str(each["message"]))
            for each in islice(entry.get("related") or (), RELATED)
        )
        return Finding(
            _path(entry, folder),
            _span(entry),
            str(entry["code"]),
            str(entry["name"]),
            Severity(entry["severity"]),
            Certainty.OBSERVED,
            str(entry["message"]),
            related,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _path(entry: dict[str, Any], folder: str) -> str:
    return os.path.normpath(os.path.join(folder, str(entry["file"])))


def _span(entry: dict[str, Any]) -> Span:
    line, column = int(entry["line"]), int(entry["column"])
    end_line, end_column = int(entry.get("end_line", line)), int(entry.get("end_column", column))
    if min(line, column) < 1 or max(line, column, end_line, end_column) > MOST:
        raise ValueError("no place in a file")
    return Span(line, column, end_line, max(end_column, 1))
