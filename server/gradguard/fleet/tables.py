"""The tables of a scan and their columns, as `docs/en/guides/fleet.md` describes them.

findings/code=GG101/*.parquet   one row a finding
packages/*.parquet              one row a package, or a source in which there is none
unread/*.parquet                one row for each file, or source, that was not read
limits/*.parquet                one row for each place where the analysis stopped early
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from gradguard.fleet.results import Result, fixable
from gradguard.fleet.store import RESULTS, Store, place

PARTITIONS = {"findings": ("code",)}

_RELATED = pa.list_(pa.struct([("path", pa.string()), ("line", pa.int32()), ("message", pa.string())]))
_PACKAGE = [("package", pa.string()), ("source", pa.string()), ("revision", pa.string())]

SCHEMAS: dict[str, pa.Schema] = {
    "findings": pa.schema(
        [
            *_PACKAGE,
            ("path", pa.string()),
            ("line", pa.int32()),
            ("column", pa.int32()),
            ("end_line", pa.int32()),
            ("end_column", pa.int32()),
            ("code", pa.string()),
            ("name", pa.string()),
            ("severity", pa.string()),
            ("certainty", pa.string()),
            ("message", pa.string()),
            ("notes", pa.list_(pa.string())),
            ("related", _RELATED),
            ("fixable", pa.string()),
            ("text", pa.string()),
            ("context", pa.list_(pa.string())),
            ("context_line", pa.int32()),
            ("fingerprint", pa.string()),
        ]
    ),
    "packages": pa.schema(
        [
            *_PACKAGE,
            ("root", pa.string()),
            ("kind", pa.string()),
            ("state", pa.string()),
            ("why", pa.string()),
            ("digest", pa.string()),
            ("kept", pa.bool_()),
            ("files", pa.int32()),
            ("torch_files", pa.int32()),
            ("lines", pa.int64()),
            ("seconds", pa.float64()),
            ("errors", pa.int32()),
            ("warnings", pa.int32()),
            ("information", pa.int32()),
            ("hints", pa.int32()),
            ("unread", pa.int32()),
            ("limits", pa.int32()),
        ]
    ),
    "unread": pa.schema([*_PACKAGE, ("path", pa.string()), ("why", pa.string())]),
    "limits": pa.schema(
        [
            *_PACKAGE,
            ("path", pa.string()),
            ("line", pa.int32()),
            ("message", pa.string()),
            ("internal_error", pa.bool_()),
        ]
    ),
}


class Loading:
    """Puts to each row of a package what is kept of it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        head = json.loads(row["head"])
        data = self._store.get(place(RESULTS, head["key"])) if head.get("key") else None
        return {"head": row["head"], "blob": data or b""}


def makers() -> dict[str, Callable[[dict[str, Any]], pa.Table]]:
    """What makes each table of loaded rows."""
    return {"findings": _findings, "packages": _packages, "unread": _unread, "limits": _limits}


def empty(name: str) -> pa.Table:
    """A table without rows, as is written where there are none: who reads it finds its columns."""
    return SCHEMAS[name].empty_table()


def _each(batch: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Result]]:
    for head, blob in zip(batch["head"], batch["blob"]):
        yield json.loads(str(head)), Result.of(bytes(blob)) if len(blob) else Result()


def _table(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([_clean(row) for row in rows], schema=SCHEMAS[name])


def _clean(value: Any) -> Any:
    """The same, with names that are no UTF-8 written with escapes, as tables hold UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value


def _about(head: dict[str, Any]) -> dict[str, Any]:
    return {"package": head["package"], "source": head["location"], "revision": head.get("revision", "")}


def below(root: str, path: str) -> str:
    """A path of a package as one of its source."""
    return f"{root}/{path}" if root and path else root or path


def _findings(batch: dict[str, Any]) -> pa.Table:
    rows = []
    for head, result in _each(batch):
        root = head.get("root", "")
        marks = result.marks(head["package"])
        for finding, lines, at, mark in zip(result.findings, result.lines, result.at, marks):
            rows.append(
                {
                    **_about(head),
                    "path": below(root, finding.path),
                    "line": finding.span.line,
                    "column": finding.span.column,
                    "end_line": finding.span.end_line,
                    "end_column": finding.span.end_column,
                    "code": finding.code,
                    "name": finding.name,
                    "severity": finding.severity.value,
                    "certainty": finding.certainty.value,
                    "message": finding.message,
                    "notes": list(finding.notes),
                    "related": [
                        {"path": below(root, each.path), "line": each.span.line, "message": each.message}
                        for each in finding.related
                    ],
                    "fixable": fixable(finding),
                    "text": lines[at],
                    "context": list(lines) if len(lines) > 1 else None,
                    "context_line": finding.span.line - at if len(lines) > 1 else None,
                    "fingerprint": mark,
                }
            )
    return _table("findings", rows)


def _packages(batch: dict[str, Any]) -> pa.Table:
    rows = []
    for head, _ in _each(batch):
        severities = severity_counts(head.get("counts", {}))
        rows.append(
            {
                **_about(head),
                "root": head.get("root", ""),
                "kind": head["kind"],
                "state": head["state"],
                "why": head.get("why", ""),
                "digest": head.get("key", ""),
                "kept": head.get("kept", False),
                "files": head.get("files", 0),
                "torch_files": head.get("torch_files", 0),
                "lines": head.get("lines", 0),
                "seconds": head.get("seconds", 0.0),
                "errors": severities["error"],
                "warnings": severities["warning"],
                "information": severities["information"],
                "hints": severities["hint"],
                "unread": len(unread_of(head)),
                "limits": head.get("limits", 0),
            }
        )
    return _table("packages", rows)


def _unread(batch: dict[str, Any]) -> pa.Table:
    rows = []
    for head, _ in _each(batch):
        rows += [{**_about(head), "path": path, "why": why} for path, why in unread_of(head)]
    return _table("unread", rows)


def _limits(batch: dict[str, Any]) -> pa.Table:
    rows = []
    for head, result in _each(batch):
        for limit, fault in result.limits:
            rows.append(
                {
                    **_about(head),
                    "path": below(head.get("root", ""), limit.path),
                    "line": limit.span.line,
                    "message": limit.message,
                    "internal_error": fault,
                }
            )
    return _table("limits", rows)


def unread_of(head: dict[str, Any]) -> list[tuple[str, str]]:
    """Paths in the source, and why they were not read."""
    found = [(path, why) for path, why in head.get("unread", ())]
    found += [(below(head.get("root", ""), path), why) for path, why in head.get("lost", ())]
    if head["state"] == "unopened":
        found.append(("", head["why"]))
    return found


def severity_counts(counts: dict[str, int]) -> dict[str, int]:
    """Findings by severity."""
    found = dict.fromkeys(("error", "warning", "information", "hint"), 0)
    for key, number in counts.items():
        found[key.partition(" ")[0]] += number
    return found
