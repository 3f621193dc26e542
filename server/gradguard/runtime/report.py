"""What a run tells: as values, as text, as the JSON of `gradguard check`, and as `.gradguard/last-run.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from gradguard import __version__
from gradguard.disk.folder import Folder
from gradguard.disk.reading import read_or_none
from gradguard.findings import Finding, Limit, Severity, Span
from gradguard.runtime import lines
from gradguard.runtime.growth import Timeline
from gradguard.runtime.watched_run import WatchedRun
from gradguard.source.printable import printable

SCHEMA = 1
LAST_RUN = Path(".gradguard", "last-run.json")
WORTH_SHOWING = 2


@dataclass(frozen=True, slots=True)
class Series:
    """How many graph nodes and saved bytes were alive at every pass of one place.

    Sample i was taken at pass `i * stride`. seconds count from the start of the run.
    """

    path: str
    line: int
    what: str
    passes: int
    stride: int
    seconds: tuple[float, ...]
    nodes: tuple[int, ...]
    saved_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostReads:
    """Operators at one line that make the host wait for a device, and in how many optimizer steps they were seen."""

    path: str
    line: int
    count: int
    steps: int
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """seconds: length of the run. own_seconds: what the monitor spent looking at operators, without its dispatch."""

    seconds: float
    own_seconds: float
    operators: int
    light: bool


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything a run told."""

    command: tuple[str, ...]
    torch: str
    findings: tuple[Finding, ...]
    limits: tuple[Limit, ...]
    series: tuple[Series, ...]
    reads: tuple[HostReads, ...]
    costs: Costs
    files: tuple[tuple[str, str], ...]
    troubles: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: WatchedRun, command: tuple[str, ...], path: Path) -> RunReport:
        """The report of a run that has ended."""
        findings, limits = run.results()
        state, observers = run.state, run.observers
        syncs = sorted(observers.host_syncs.by_place.values(), key=lambda s: (s.place.path, s.place.line))
        return cls(
            command,
            torch.__version__,
            findings,
            limits,
            tuple(_series(t) for t in observers.growth.timelines.values() if t.passes >= WORTH_SHOWING),
            tuple(
                HostReads(s.place.path, s.place.line, s.count, s.last - s.first + 1, tuple(sorted(s.ops)))
                for s in syncs
            ),
            Costs(run.elapsed, state.seconds, state.operators, state.light),
            tuple((name, content_hash(name)) for name in state.frames.user_files() if os.path.isfile(name)),
            tuple(state.troubles),
        )


def _series(timeline: Timeline) -> Series:
    place = timeline.site.inner if timeline.what != "forward" else timeline.site.root_place
    assert place is not None
    return Series(
        place.path,
        place.line,
        timeline.what,
        timeline.passes,
        timeline.stride,
        tuple(round(s, 4) for s, _, _ in timeline.samples),
        tuple(n for _, n, _ in timeline.samples),
        tuple(b for _, _, b in timeline.samples),
    )


def content_hash(path: str) -> str:
    """SHA-256 of the file's text in UTF-8, without a byte order mark, line ends as they are; empty if unreadable."""
    text = read_or_none(path)
    if text is None:
        return ""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def document(report: RunReport, root: Path) -> dict[str, Any]:
    """The JSON of `gradguard check`; paths are relative to `root` where they lie below it."""

    def below(path: str) -> str:
        return shown(path, root)

    return {
        "version": __version__,
        "torch": report.torch,
        "findings": [{**each.plain(below), "fixes": []} for each in report.findings],
        "limits": [each.plain(below) for each in report.limits],
        "errors": [],
    }


def last_run(report: RunReport, root: Path) -> dict[str, Any]:
    """What `.gradguard/last-run.json` holds, in the folder in which the run was started.

    All of `document`, and:

    - `schema`: 1.
    - `command`: the words after `gradguard run`; empty for `gradguard.monitor()`.
    - `files`: path -> content hash (see `content_hash`) of every file of the user's code that ran. A finding is
      stale when the text of its file has another hash. Paths are relative to the folder where they lie below it.
    - `series`: per repeated place `file`, `line`, `what` ("optimizer step", "backward", "forward"), `passes`,
      `stride` (passes between two samples), and the lists `seconds`, `nodes`, `saved_bytes`.
    - `host_reads`: per line `file`, `line`, `count`, `steps` (optimizer steps in which it was seen), `ops`.
    - `costs`: `seconds`, `own_seconds`, `operators`, `light`.
    """
    return {
        "schema": SCHEMA,
        **document(report, root),
        "command": list(report.command),
        "files": {shown(name, root): digest for name, digest in report.files},
        "series": [
            {
                "file": shown(s.path, root),
                "line": s.line,
                "what": s.what,
                "passes": s.passes,
                "stride": s.stride,
                "seconds": list(s.seconds),
                "nodes": list(s.nodes),
                "saved_bytes": list(s.saved_bytes),
            }
            for s in report.series
        ],
        "host_reads": [
            {
                "file": shown(r.path, root),
                "line": r.line,
                "count": r.count,
                "steps": r.steps,
                "ops": list(r.ops),
            }
            for r in report.reads
        ],
        "costs": {
            "seconds": round(report.costs.seconds, 3),
            "own_seconds": round(report.costs.own_seconds, 3),
            "operators": report.costs.operators,
            "light": report.costs.light,
        },
    }


def write_last_run(report: RunReport, root: Path) -> None:
    """Writes the file whole or not at all, and through no link. Raises OSError if it cannot be written."""
    data = json.dumps(last_run(report, root), indent=1) + "\n"
    with Folder.open(root) as here, here.below([LAST_RUN.parts[0]], make=True, mode=0o777) as own:
        if own.look(".gitignore") is None:
            own.write(".gitignore", b"*\n")
        own.write(LAST_RUN.name, data.encode())


def shown(path: str, root: Path) -> str:
    absolute = Path(os.path.abspath(path))
    try:
        return str(absolute.relative_to(root))
    except ValueError:
        return str(absolute)


def text_report(report: RunReport, root: Path | None = None) -> str:
    """The report for people, with the source lines."""
    root = root or Path.cwd()
    out: list[str] = []
    for finding in report.findings:
        out.append(
            f"{shown(finding.path, root)}:{finding.span.line}:{finding.span.column}: "
            f"{finding.severity.value}: {finding.code} [{finding.name}] {finding.message}"
        )
        out.extend(_quoted(finding.path, finding.span))
        for related in finding.related:
            out.append(f"    {shown(related.path, root)}:{related.span.line}: {related.message}")
            out.extend("    " + text for text in _quoted(related.path, related.span, marked=False))
        out.extend(f"    {line}" for note in finding.notes for line in note.split("\n"))
        out.append("")
    if report.reads:
        out.append("Host reads (an accelerator would make the host wait):")
        for read in report.reads:
            steps = f" in {read.steps} steps" if read.steps > 1 else ""
            out.append(
                f"    {shown(read.path, root)}:{read.line}: {read.count} times{steps} ({', '.join(read.ops)})"
            )
        out.append("")
    for series in report.series:
        if series.nodes:
            out.append(
                f"{shown(series.path, root)}:{series.line}: {series.passes} passes ({series.what}): live graph nodes "
                f"{series.nodes[0]} -> {series.nodes[-1]}, saved bytes {series.saved_bytes[0]:,} -> "
                f"{series.saved_bytes[-1]:,}, at most {max(series.saved_bytes):,}"
            )
    if report.series:
        out.append("")
    out.extend(f"note: {limit.message}" for limit in report.limits)
    costs = report.costs
    out.append(
        f"{_count(report.findings)}; watched {costs.operators:,} operators in {costs.seconds:.2f} s, "
        f"{costs.own_seconds:.2f} s of them spent by the monitor{' (light)' if costs.light else ''}"
    )
    return "".join(printable(line) + "\n" for line in out)


def _quoted(path: str, span: Span, marked: bool = True) -> list[str]:
    source = lines.file(path)
    if not 0 < span.line <= len(source.lines):
        return []
    text = source.lines[span.line - 1].rstrip()
    bare = text.lstrip()
    quoted = [f"  {span.line:>5} | {_printed(bare)}"]
    if marked:
        start = max(span.column - 1 - (len(text) - len(bare)), 0)
        end = span.end_column - 1 - (len(text) - len(bare)) if span.end_line == span.line else len(bare)
        under = "^" * max(len(_printed(bare[start:end])), 1)
        quoted.append("        | " + " " * len(_printed(bare[:start])) + under)
    return quoted


def _printed(source: str) -> str:
    return printable(source.replace("\t", "    "))


def _count(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return "nothing found"
    words = []
    for severity in Severity:
        number = sum(f.severity is severity for f in findings)
        if number:
            words.append(
                f"{number} {severity.value}{'s' if number > 1 and severity is not Severity.INFORMATION else ''}"
            )
    return ", ".join(words)
