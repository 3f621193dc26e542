"""What a scan came to, in figures and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradguard.check.catalogue import catalogue
from gradguard.cli.formats.text import plural
from gradguard.fleet.scan import Head
from gradguard.fleet.tables import severity_counts, unread_of
from gradguard.fleet.trend import Found, Trend

SEVERITIES = ("error", "warning", "information", "hint")
SHOWN = 20
"""Packages, files and findings that the text names."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and its findings by severity."""

    code: str
    name: str
    counts: tuple[int, ...]
    packages: int


@dataclass(frozen=True, slots=True)
class OfPackage:
    """A package and what was found in it."""

    name: str
    revision: str
    source: str
    files: int
    lines: int
    seconds: float
    counts: tuple[int, ...]
    unread: int
    limits: int


@dataclass(frozen=True, slots=True)
class Summary:
    """All figures of a scan."""

    sources: int
    packages: tuple[OfPackage, ...]
    """Those with the most errors first."""
    rules: tuple[Rule, ...]
    unread: tuple[tuple[str, str, str], ...]
    """Source, path and reason."""
    kept: int
    """Packages that were not read again, as nothing of them had changed."""
    torch_files: int
    wall: float
    trend: Trend | None = None
    against: str = ""

    @property
    def counts(self) -> tuple[int, ...]:
        """Findings by severity."""
        return tuple(sum(each.counts[place] for each in self.packages) for place in range(len(SEVERITIES)))

    @property
    def files(self) -> int:
        """Files that were read."""
        return sum(each.files for each in self.packages)

    @property
    def lines(self) -> int:
        """Lines of them."""
        return sum(each.lines for each in self.packages)


def summed(
    heads: Iterable[Head], sources: int, wall: float, trend: Trend | None = None, against: str = ""
) -> Summary:
    """The figures of what came back."""
    packages = []
    unread: list[tuple[str, str, str]] = []
    counts: dict[str, Counter[str]] = {}
    where: Counter[str] = Counter()
    kept = torch_files = 0
    for head in heads:
        missed = unread_of(head)
        unread += [(head["location"], path, why) for path, why in missed]
        if head["state"] != "checked":
            continue
        severities = severity_counts(head["counts"])
        packages.append(
            OfPackage(
                head["package"],
                head["revision"],
                head["location"],
                head["files"],
                head["lines"],
                head["seconds"],
                tuple(severities[each] for each in SEVERITIES),
                len(missed),
                head["limits"],
            )
        )
        kept += head["kept"]
        torch_files += head["torch_files"]
        codes = set()
        for key, number in head["counts"].items():
            severity, _, code = key.partition(" ")
            counts.setdefault(code, Counter())[severity] += number
            codes.add(code)
        where.update(codes)
    names = {rule.code: rule.name for rule in catalogue().rules} if counts else {}
    return Summary(
        sources,
        tuple(sorted(packages, key=lambda each: (*(-count for count in each.counts), each.name))),
        tuple(
            Rule(code, names.get(code, ""), tuple(found[each] for each in SEVERITIES), where[code])
            for code, found in sorted(counts.items())
        ),
        tuple(sorted(unread)),
        kept,
        torch_files,
        wall,
        trend,
        against,
    )


def text(summary: Summary) -> Iterator[str]:
    """Lines for people."""
    yield (
        f"{plural(summary.sources, 'source')}, {plural(len(summary.packages), 'package')}, "
        f"{plural(summary.files, 'file')} ({summary.torch_files:,} with torch), {summary.lines:,} lines in {summary.wall:,.0f} s; "
        f"{plural(summary.kept, 'package')} kept from earlier scans"
    )
    yield _counted(summary.counts)
    if summary.rules:
        yield ""
        yield from _columns(
            [
                ("rule", "", *SEVERITIES, "packages"),
                *((each.code, each.name, *each.counts, each.packages) for each in summary.rules),
            ]
        )
    loud = [each for each in summary.packages if any(each.counts)]
    if loud:
        yield ""
        yield from _columns(
            [
                ("package", "", *SEVERITIES, "lines"),
                *((each.name, each.revision[:12], *each.counts, each.lines) for each in loud[:SHOWN]),
            ]
        )
        if len(loud) > SHOWN:
            yield f"... and {plural(len(loud) - SHOWN, 'more package')} with findings"
    if summary.trend is not None:
        yield ""
        yield from trend_text(summary.trend, summary.against)
    yield ""
    yield f"not read: {len(summary.unread):,}"
    for why, number in Counter(why for *_, why in summary.unread).most_common(SHOWN):
        yield f"  {number:,} x {why}"


def trend_text(trend: Trend, against: str, shown: int = SHOWN) -> Iterator[str]:
    """What became of an earlier scan."""
    yield (
        f"against {against}: {len(trend.new):,} new, {len(trend.gone):,} gone, {trend.kept:,} kept; "
        f"{len(trend.first):,} in packages that it had not read, {len(trend.unread):,} of it in packages that are not read now"
    )
    for word, found in (("new", trend.new), ("gone", trend.gone)):
        for each in found[:shown]:
            yield f"  {word:4} {line_of(each)}"
        if len(found) > shown:
            yield f"  {word:4} ... and {len(found) - shown:,} more"


def line_of(found: Found) -> str:
    """A finding in one line."""
    return f"{found.severity} {found.code} {found.place}: {found.message}"


def _counted(counts: Sequence[int]) -> str:
    total = sum(counts)
    parts = ", ".join(f"{count:,} {name}" for name, count in zip(SEVERITIES, counts) if count)
    return f"{plural(total, 'finding')} ({parts})" if total else "no findings"


def _columns(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Texts to the left, numbers to the right."""
    cells = [[f"{each:,}" if isinstance(each, int) else str(each) for each in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    for row in cells:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]
        yield "  " + "  ".join([*left, *right]).rstrip()
