"""What a run tells: as values, as the JSON of `gradguard check`, and as `.gradguard/last-run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from gradguard import __version__
from gradguard.disk.folder import Folder
from gradguard.disk.reading import read_or_none
from gradguard.findings import Finding, Limit, Severity
from gradguard.runtime.growth import Timeline
from gradguard.runtime.watched_run import WatchedRun

SCHEMA = 1
LAST_RUN = Path(".gradguard", "last-run.json")
WORTH_SHOWING = 2
MAIN = "the first process"
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Series:
    """How many graph nodes and saved bytes were alive at every pass of one place.

    Sample i was taken at pass `i * stride`. seconds count from the start of the run. process: in the report of several
    processes, the one that had the most at this place and is shown.
    """

    path: str
    line: int
    what: str
    passes: int
    stride: int
    seconds: tuple[float, ...]
    nodes: tuple[int, ...]
    saved_bytes: tuple[int, ...]
    process: str = ""


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
    """Everything a run told.

    rank: of a process of a distributed job, its rank. process: what a process without one is called. ended: false for
    what was written while the run went on. parts: in the report of several processes, one report for each of them.
    """

    command: tuple[str, ...]
    torch: str
    findings: tuple[Finding, ...]
    limits: tuple[Limit, ...]
    series: tuple[Series, ...]
    reads: tuple[HostReads, ...]
    costs: Costs
    files: tuple[tuple[str, str], ...]
    troubles: tuple[str, ...] = ()
    rank: int | None = None
    process: str = MAIN
    ended: bool = True
    parts: tuple[RunReport, ...] = ()

    @classmethod
    def of(cls, run: WatchedRun, command: tuple[str, ...]) -> RunReport:
        """The report of a run, up to now if it has not ended."""
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
            ended=run.closed,
        )

    @property
    def label(self) -> str:
        """Which process this is the report of."""
        return self.process if self.rank is None else f"rank {self.rank}"

    @property
    def loud(self) -> bool:
        """Whether something of warning or above was found."""
        return any(f.severity.rank <= Severity.WARNING.rank for f in self.findings)

    def seen_in(self, finding: Finding) -> tuple[RunReport, ...]:
        """Of several processes, those that saw a finding."""
        return tuple(part for part in self.parts if any(key(f) == key(finding) for f in part.findings))


def key(finding: Finding) -> tuple[str, int, str]:
    """What findings of several processes have in common when they are one finding."""
    return finding.path, finding.span.line, finding.code


def labels(parts: Iterable[RunReport]) -> str:
    """Several processes in a few words, such as "ranks 0-7"."""
    known = list(parts)
    words = [part.process for part in known if part.rank is None]
    if len(words) > MOST_NAMES:
        words[MOST_NAMES:] = [f"{len(words) - MOST_NAMES} others"]
    ranks = [part.rank for part in known if part.rank is not None]
    return " and ".join([*words, ranks_text(ranks)] if ranks else words)


def ranks_text(ranks: Iterable[int]) -> str:
    """Such as "rank 1", or "ranks 0-2, 7"."""
    ranges: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    told = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return f"{'ranks' if ranges[1:] or ranges[0][1:] != ranges[0][:1] else 'rank'} {told}"


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
        "findings": [{**each.plain(below), "fixes": [], **_ranks(report, each)} for each in report.findings],
        "limits": [each.plain(below) for each in report.limits],
        "errors": [],
    }


def _ranks(report: RunReport, finding: Finding) -> dict[str, Any]:
    seen = [part.rank for part in report.seen_in(finding) if part.rank is not None]
    return {"ranks": seen} if seen else {}


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
    - `ended`: false where the run went on when this was written, or was killed.
    - `ranks`: for each of several processes `rank` (null for one that has none), `process`, `ended`, `torch`, and its own
      `series`, `host_reads` and `costs`. A finding has `ranks`, too: those that saw it. The lists above are then those
      of the process that had most at each line.
    """
    told = {
        "schema": SCHEMA,
        **document(report, root),
        "command": list(report.command),
        "files": {shown(name, root): digest for name, digest in report.files},
        "ended": report.ended,
        **_figures(report, root),
    }
    if report.parts:
        told["ranks"] = [
            {
                "rank": part.rank,
                "process": part.label,
                "ended": part.ended,
                "torch": part.torch,
                **_figures(part, root),
            }
            for part in report.parts
        ]
    return told


def _figures(report: RunReport, root: Path) -> dict[str, Any]:
    return {
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


@contextmanager
def own_folder(root: Folder) -> Iterator[Folder]:
    """Where a run leaves what it tells, below the folder it ran in; git ignores it. Raises OSError if it cannot be made."""
    with root.below([LAST_RUN.parts[0]], make=True, mode=0o777) as own:
        if own.look(".gitignore") is None:
            own.write(".gitignore", b"*\n")
        yield own


def write_last_run(report: RunReport, root: Path) -> None:
    """Writes the file whole or not at all, and through no link. Raises OSError if it cannot be written."""
    data = json.dumps(last_run(report, root), indent=1) + "\n"
    with Folder.open(root) as here, own_folder(here) as own:
        own.write(LAST_RUN.name, data.encode())


def shown(path: str, root: Path) -> str:
    absolute = Path(os.path.abspath(path))
    try:
        return str(absolute.relative_to(root))
    except ValueError:
        return str(absolute)
