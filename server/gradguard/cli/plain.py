"""What is kept of a file that was checked, as plain values, and back.

What is read back may be anything that JSON can say: a disk may be damaged, another program may write there. It is
taken only if it is what could have been written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gradguard.check.api import Report
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Limit, Related, Severity, Span

MOST = 1_000_000_000
"""Above every line and column."""

_CODE = re.compile(r"GG[0-9]{3}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Kept:
    """What checking a file gave, and what was looked up for it in other files."""

    report: Report
    troubles: tuple[tuple[str, int], ...]
    """Messages and lines of what could not be checked."""
    resolved: Mapping[tuple[str, int, str], str | None]
    """The files that imports (name, level, importing file) led to."""
    read: Mapping[str, str]
    """The digests of the files that were read."""


def from_kept(kept: Kept) -> dict[str, Any]:
    """Everything that is kept."""
    report = kept.report
    return {
        "findings": [from_finding(each) for each in report.findings],
        "elsewhere": [from_finding(each) for each in report.elsewhere],
        "limits": [from_limit(each) for each in report.limits],
        "needed": [[path, _from_span(span)] for path, span in report.needed],
        "troubles": [list(each) for each in kept.troubles],
        "resolved": [[*asked, found] for asked, found in kept.resolved.items()],
        "read": [list(each) for each in kept.read.items()],
    }


def to_kept(data: object) -> Kept:
    """What `from_kept` wrote. Raises ValueError on anything else."""
    fields = _fields(data, "findings", "elsewhere", "limits", "needed", "troubles", "resolved", "read")
    findings, elsewhere, limits, needed, troubles, resolved, read = fields
    return Kept(
        Report(
            _all(findings, to_finding),
            _all(limits, to_limit),
            _all(elsewhere, to_finding),
            needed=_all(needed, _to_needed),
        ),
        _all(troubles, _to_trouble),
        dict(_all(resolved, _to_resolved)),
        dict(_all(read, _to_read)),
    )


def from_finding(finding: Finding) -> dict[str, Any]:
    """Everything a finding holds."""
    return {
        "path": finding.path,
        "span": _from_span(finding.span),
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "message": finding.message,
        "related": [[each.path, _from_span(each.span), each.message] for each in finding.related],
        "fixes": [
            [
                fix.kind,
                fix.title,
                fix.applicability.value,
                _from_span(fix.span),
                [list(pair) for pair in fix.data],
            ]
            for fix in finding.fixes
        ],
        "notes": list(finding.notes),
    }


def to_finding(data: object) -> Finding:
    """The finding that `from_finding` wrote. Raises ValueError on anything else."""
    names = "path", "span", "code", "name", "severity", "certainty", "message", "related", "fixes", "notes"
    path, span, code, name, severity, certainty, message, related, fixes, notes = _fields(data, *names)
    return Finding(
        _text(path),
        _to_span(span),
        _text(code, _CODE),
        _text(name, _NAME),
        Severity(_text(severity)),
        Certainty(_text(certainty)),
        _text(message),
        _all(related, _to_related),
        _all(fixes, _to_fix),
        _all(notes, _text),
    )


def _to_related(data: object) -> Related:
    path, span, message = _items(data, 3)
    return Related(_text(path), _to_span(span), _text(message))


def from_limit(limit: Limit) -> list[object]:
    """Everything of a limit that is kept: not the traceback of a fault."""
    return [limit.path, _from_span(limit.span), limit.message]


def to_limit(data: object) -> Limit:
    """What `from_limit` wrote. Raises ValueError on anything else."""
    path, span, message = _items(data, 3)
    return Limit(_text(path), _to_span(span), _text(message))


def _to_fix(data: object) -> FixPlan:
    kind, title, safety, span, pairs = _items(data, 5)
    return FixPlan(
        _text(kind), _text(title), Applicability(_text(safety)), _to_span(span), _all(pairs, _to_pair)
    )


def _to_pair(data: object) -> tuple[str, str]:
    name, value = _items(data, 2)
    return _text(name), _text(value)


def _to_needed(data: object) -> tuple[str, Span]:
    path, span = _items(data, 2)
    return _text(path), _to_span(span)


def _to_trouble(data: object) -> tuple[str, int]:
    message, line = _items(data, 2)
    return _text(message), _number(line)


def _to_resolved(data: object) -> tuple[tuple[str, int, str], str | None]:
    module, level, path, found = _items(data, 4)
    return (_text(module), _number(level), _text(path)), None if found is None else _text(found)


def _to_read(data: object) -> tuple[str, str]:
    path, mark = _items(data, 2)
    return _text(path), _text(mark)


def _from_span(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _to_span(data: object) -> Span:
    return Span(*(_number(each, 1) for each in _items(data, 4)))


def _fields(data: object, *names: str) -> list[object]:
    if not isinstance(data, dict) or data.keys() != set(names):
        raise ValueError("not these fields")
    return [data[name] for name in names]


def _all(data: object, convert: Callable[[object], _T]) -> tuple[_T, ...]:
    if not isinstance(data, list):
        raise ValueError("no list")
    return tuple(map(convert, data))


def _items(data: object, count: int) -> list[object]:
    if not isinstance(data, list) or len(data) != count:
        raise ValueError(f"no list of {count}")
    return data


def _text(data: object, form: re.Pattern[str] | None = None) -> str:
    if not isinstance(data, str) or (form is not None and not form.fullmatch(data)):
        raise ValueError("not such a text")
    # Names of files that are no UTF-8 have their bytes as surrogates; other surrogates could not be written.
    data.encode("utf-8", "surrogateescape")
    return data


def _number(data: object, least: int = 0) -> int:
    if type(data) is not int or not least <= data <= MOST:
        raise ValueError("not such a number")
    return data
