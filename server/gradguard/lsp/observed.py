"""Findings that the runtime monitor saw, from the files it leaves in workspace folders."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable
from typing import Any

from gradguard.disk.reading import Missing, Unreadable, read_utf8
from gradguard.findings import Certainty, Finding, Related, Severity, Span

log = logging.getLogger(__name__)

NAME = os.path.join(".gradguard", "last-run.json")
MAX_BYTES = 16_000_000
MOST = 1_000_000_000
"""Above every line and column."""


class Observed:
    """Observed findings by file. Those of a file that changed since the run are not shown: their lines moved."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[Finding]] = {}
        self._hashes: dict[str, str] = {}
        self._checked: dict[str, tuple[str, bool]] = {}

    def load(self, folders: Iterable[str]) -> bool:
        """Read the last run of each folder. Whether anything changed."""
        by_path: dict[str, list[Finding]] = {}
        hashes: dict[str, str] = {}
        for folder in folders:
            data = _read(os.path.join(folder, NAME))
            if data is None:
                continue
            for path, digest in _hashes(data, folder).items():
                hashes[path] = digest
            found = data.get("findings")
            for entry in found if isinstance(found, list) else ():
                finding = _finding(entry, folder)
                if finding is not None:
                    by_path.setdefault(finding.path, []).append(finding)
        changed = by_path != self._by_path or hashes != self._hashes
        self._by_path, self._hashes = by_path, hashes
        self._checked.clear()
        return changed

    def findings(self, path: str, text: str) -> Iterable[Finding]:
        """What was observed in a file, if its text is the one that ran."""
        found = self._by_path.get(path)
        if not found:
            return ()
        checked = self._checked.get(path)
        if checked is None or checked[0] != text:
            wanted = self._hashes.get(path)
            same = (
                wanted is not None
                and wanted == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            )
            checked = self._checked[path] = (text, same)
        return found if checked[1] else ()


def _read(path: str) -> dict[str, Any] | None:
    try:
        data = json.loads(read_utf8(path, MAX_BYTES))
    except Missing:
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
            for each in entry.get("related") or ()
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
        log.warning("a finding of the last run cannot be understood: %.200r", entry)
        return None


def _path(entry: dict[str, Any], folder: str) -> str:
    return os.path.normpath(os.path.join(folder, str(entry["file"])))


def _span(entry: dict[str, Any]) -> Span:
    line, column = int(entry["line"]), int(entry["column"])
    end_line, end_column = int(entry.get("end_line", line)), int(entry.get("end_column", column))
    if min(line, column) < 1 or max(line, column, end_line, end_column) > MOST:
        raise ValueError("no place in a file")
    return Span(line, column, end_line, max(end_column, 1))
