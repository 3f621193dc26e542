"""`gradguard fleet`: from the words of the command line to the tables, the summary and the exit code."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as parquet

from gradguard import __version__
from gradguard.cli.refused import Refused
from gradguard.cli.stderr import complain, tell
from gradguard.fleet import cluster, page, progress, sarif, scan, sources, summary, tables, trend
from gradguard.fleet.arguments import diff_arguments, scan_arguments
from gradguard.fleet.model import Limits, Options, Source
from gradguard.fleet.store import Store
from gradguard.fleet.work import Work, version
from gradguard.source.printable import printable

DONE, NEW, CANNOT, INTERRUPTED = 0, 1, 2, 130
MARK = "scan.json"
WRITTEN = (*tables.SCHEMAS, "sarif", "summary.txt", "summary.html")
"""What a scan writes besides its mark and its results, and replaces."""


def main(words: Sequence[str]) -> int:
    """Run `gradguard fleet` and return the exit code."""
    try:
        if sys.platform == "win32":
            raise Refused("gradguard fleet runs on Linux and macOS; on Windows use it in WSL")
        if words[:1] == ["diff"]:
            return _diff(diff_arguments(words[1:]))
        return _scan(scan_arguments(words))
    except Refused as error:
        for reason in error.reasons:
            complain(reason)
        return CANNOT


def _diff(arguments: argparse.Namespace) -> int:
    earlier, later = (_place(each) for each in (arguments.earlier, arguments.later))
    found = trend.compare(trend.load(earlier), trend.load(later))
    for line in summary.trend_text(found, arguments.earlier, shown=1_000_000):
        print(printable(line))
    return NEW if any(each.loud for each in (*found.new, *found.first)) else DONE


@dataclass(frozen=True, slots=True)
class _Request:
    """A scan as it was asked for, everything looked up."""

    sources: list[Source]
    options: Options
    limits: Limits
    output: Store
    results: Store
    against: trend.Findings | None
    named: str


def _request(arguments: argparse.Namespace) -> _Request:
    options = Options(
        tuple(arguments.select or ()),
        tuple(arguments.ignore or ()),
        arguments.torch or "",
        arguments.all,
        arguments.context,
    )
    problems = options.parsed().problems
    if problems:
        raise Refused(*map(str, problems))
    found = sources.sources(arguments.sources)
    if not found:
        raise Refused("the lists name no source; write one LOCATION or LOCATION REVISION a line")
    output = _place(arguments.output)
    return _Request(
        found,
        options,
        Limits(arguments.seconds, arguments.file_seconds, arguments.memory * 1_000_000),
        output,
        _place(arguments.results) if arguments.results else output,
        trend.load(_place(arguments.against)) if arguments.against else None,
        arguments.against or "",
    )


def _place(named: str) -> Store:
    """The store at an address, a folder by its whole path. Raises Refused."""
    address = named if "://" in named else os.path.abspath(os.path.expanduser(named))
    store = Store(address)
    try:
        store.has("")
    except (ImportError, ValueError, OSError) as error:
        raise Refused(f"{named}: cannot be used: {' '.join(str(error).split())}") from None
    return store


def _scan(arguments: argparse.Namespace) -> int:
    request = _request(arguments)
    began = time.monotonic()
    try:
        _claim(request)
    except OSError as error:
        raise Refused(f"--output {arguments.output}: {error.strerror or error}") from None
    counts = progress.Counts()
    try:
        with cluster.running(arguments.address, arguments.jobs) as ray:
            work = Work(version(), request.options, request.limits, request.results)
            with progress.shown(counts) as show:
                came = scan.run(request.sources, work, ray, show)
            heads = [came.heads[key] for key in sorted(came.heads)]
            _write_tables(request, ray, heads)
    except KeyboardInterrupt:
        tell(f"interrupted; {counts.done:,} packages are done and kept: the same command goes on from there")
        return INTERRUPTED
    if arguments.sarif:
        sarif.write(heads, request.results, request.output)
    return _summarise(request, heads, time.monotonic() - began)


def _claim(request: _Request) -> None:
    """Make the output this scan's: tables of an earlier one go, those of anybody else are left alone. Raises OSError."""
    output = request.output
    if not output.has(MARK) and any(output.has(name) for name in WRITTEN):
        raise Refused(
            f"--output {output.address}: it holds something else than a scan; name a new or empty folder"
        )
    for name in WRITTEN:
        output.remove(name)
    output.put(MARK, _mark(request, None))


def _mark(request: _Request, done: summary.Summary | None) -> bytes:
    document: dict[str, object] = {
        "gradguard": __version__,
        "version": version(),
        "options": request.options.plain(),
        "sources": len(request.sources),
        "done": done is not None,
    }
    if done is not None:
        document |= {
            "packages": len(done.packages),
            "files": done.files,
            "lines": done.lines,
            "findings": dict(zip(summary.SEVERITIES, done.counts)),
            "unread": len(done.unread),
            "seconds": round(done.wall, 1),
        }
    return (json.dumps(document, indent=2) + "\n").encode()


def _write_tables(request: _Request, ray: cluster.Cluster, heads: Sequence[scan.Head]) -> None:
    rows = [{"head": json.dumps(head), "blob": b""} for head in heads]
    loading = tables.Loading(request.results)
    ray.tables(rows, loading, tables.makers(), request.output.filesystem(), tables.PARTITIONS)
    for name in tables.SCHEMAS:
        if not request.output.names(name, ".parquet"):
            folder = "".join(f"/{column}=none" for column in tables.PARTITIONS.get(name, ()))
            request.output.put(f"{name}{folder}/empty.parquet", _empty(name))


def _empty(name: str) -> bytes:
    buffer = io.BytesIO()
    table = tables.empty(name)
    parquet.write_table(table.drop_columns(list(tables.PARTITIONS.get(name, ()))), buffer)
    return buffer.getvalue()


def _summarise(request: _Request, heads: Iterable[scan.Head], wall: float) -> int:
    against = None
    if request.against is not None:
        against = trend.compare(request.against, trend.load(request.output))
    done = summary.summed(heads, len(request.sources), wall, against, request.named)
    said = "".join(f"{printable(line)}\n" for line in summary.text(done))
    try:
        request.output.put("summary.txt", said.encode("utf-8", "backslashreplace"))
        request.output.put("summary.html", page.render(done).encode("utf-8", "backslashreplace"))
        request.output.put(MARK, _mark(request, done))
    except OSError as error:
        raise Refused(f"--output {request.output.address}: {error.strerror or error}") from None
    print(said, end="")
    return DONE
