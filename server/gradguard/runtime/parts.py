"""The reports of several processes: how each is kept on disk until all are there, and the one report made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from gradguard.findings import Certainty, Finding, Limit, Related, Severity, Span
from gradguard.runtime.report import MAIN, Costs, HostReads, RunReport, Series, key, ranks_text


def to_bytes(report: RunReport) -> bytes:
    """The report of one process, with full paths."""
    return json.dumps(asdict(report)).encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> RunReport:
    """Raises ValueError, KeyError or TypeError for anything else than `to_bytes` gives."""
    told = json.loads(data.decode("utf-8", "surrogatepass"))
    return RunReport(
        **{
            **told,
            "command": tuple(told["command"]),
            "findings": tuple(map(_finding, told["findings"])),
            "limits": tuple(Limit(**{**each, "span": Span(**each["span"])}) for each in told["limits"]),
            "series": tuple(Series(**_tuples(each)) for each in told["series"]),
            "reads": tuple(HostReads(**_tuples(each)) for each in told["reads"]),
            "costs": Costs(**told["costs"]),
            "files": tuple((str(name), str(digest)) for name, digest in told["files"]),
            "troubles": tuple(told["troubles"]),
            "parts": (),
        }
    )


def _finding(told: dict[str, Any]) -> Finding:
    return Finding(
        **{
            **told,
            "span": Span(**told["span"]),
            "severity": Severity(told["severity"]),
            "certainty": Certainty(told["certainty"]),
            "related": tuple(Related(**{**each, "span": Span(**each["span"])}) for each in told["related"]),
            "fixes": (),
            "notes": tuple(told["notes"]),
        }
    )


def _tuples(told: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}


def merged(
    reports: Iterable[RunReport], command: tuple[str, ...], missing: Sequence[int] = (), silent: int = 0
) -> RunReport:
    """One report of all processes of a run.

    A finding of several is told once, as loud as the loudest. `missing` are ranks that told nothing, and `silent` is
    how many processes without a rank did so.
    """
    parts = tuple(sorted(reports, key=_order))
    findings: dict[tuple[str, int, str], Finding] = {}
    limits: dict[str, Limit] = {}
    series: dict[tuple[str, int, str], list[Series]] = {}
    reads: dict[tuple[str, int], HostReads] = {}
    for part in parts:
        for finding in part.findings:
            known = findings.get(key(finding))
            if known is None or finding.severity.rank < known.severity.rank:
                findings[key(finding)] = finding
        for limit in part.limits:
            limits.setdefault(limit.message, limit)
        for one in part.series:
            series.setdefault((one.path, one.line, one.what), []).append(replace(one, process=part.label))
        for read in part.reads:
            before = reads.get((read.path, read.line))
            if before is None or read.count > before.count:
                reads[read.path, read.line] = read
    first = "" if not parts else next(iter(parts[0].files), ("", ""))[0]
    for text in _told_nothing(parts, missing, silent):
        limits.setdefault(text, Limit(first, Span(1, 1, 1, 1), text))
    return RunReport(
        command,
        parts[0].torch if parts else "",
        tuple(sorted(findings.values(), key=lambda f: f.sort_key)),
        tuple(limits.values()),
        tuple(map(_largest, series.values())),
        tuple(sorted(reads.values(), key=lambda read: (read.path, read.line))),
        Costs(
            max((part.costs.seconds for part in parts), default=0.0),
            max((part.costs.own_seconds for part in parts), default=0.0),
            sum(part.costs.operators for part in parts),
            any(part.costs.light for part in parts),
        ),
        tuple({name: digest for part in reversed(parts) for name, digest in part.files}.items()),
        tuple(trouble for part in parts for trouble in part.troubles),
        ended=all(part.ended for part in parts) and not missing and not silent,
        parts=parts,
    )


def _order(part: RunReport) -> tuple[bool, int, bool, str]:
    return part.rank is not None, part.rank or 0, part.process != MAIN, part.process


def _largest(alike: list[Series]) -> Series:
    """Of the same place in several processes the one that kept most, which is named if others kept less."""
    most = [max(one.saved_bytes, default=0) for one in alike]
    largest = alike[most.index(max(most))]
    return largest if min(most) < max(most) else replace(largest, process="")


def _told_nothing(parts: Sequence[RunReport], missing: Sequence[int], silent: int) -> Iterable[str]:
    if missing:
        told = ranks_text(missing)
        yield f"{told[:1].upper()}{told[1:]} told nothing: killed, never started, or on another machine."
    if silent:
        told = "One process that was started" if silent == 1 else f"{silent} processes that were started"
        yield f"{told} told nothing: killed, or busy still."
    for part in parts:
        if not part.ended:
            label = f"{part.label[:1].upper()}{part.label[1:]}"
            yield f"{label} did not end by itself: what it had found after {part.costs.seconds:.0f} s is all that is known of it."
