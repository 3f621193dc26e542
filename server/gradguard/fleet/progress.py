"""How far a scan is: a bar in a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from gradguard.cli.stderr import tell
from gradguard.fleet.scan import Came, Head

EVERY = 10.0
"""Seconds between two lines."""


class _Shown(Protocol):
    def __call__(self, came: Came, head: Head) -> object: ...


class Counts:
    """What is told: done, failed, how many a second, and how long the rest takes at that rate."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self.done = 0
        self.failed = 0
        self.kept = 0

    def take(self, head: Head) -> None:
        """One more package, or source without any."""
        self.done += head["state"] != "unopened"
        self.failed += head["state"] == "unopened"
        self.kept += bool(head.get("kept"))

    @property
    def rate(self) -> float:
        """Packages a second."""
        return (self.done + self.failed) / max(self._now() - self._began, 1e-9)

    def rest(self, share: float) -> float | None:
        """Seconds that are left; None while that cannot be told."""
        if share <= 0:
            return None
        return (self._now() - self._began) * (1 - share) / share

    def line(self, came: Came) -> str:
        """All of it in one line."""
        rest = self.rest(came.share)
        left = "" if rest is None else f", {_time(rest)} left"
        return (
            f"{self.done:,} packages done ({self.kept:,} kept from earlier scans), {self.failed:,} failed, "
            f"{came.share:.0%} of {len(came.sources):,} sources, {self.rate:.1f} packages/s{left}"
        )


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def shown(counts: Counts) -> Iterator[_Shown]:
    """Takes what comes, and shows it while the block runs."""
    with _bar(counts) if sys.stderr.isatty() else _lines(counts) as show:
        yield show


@contextmanager
def _lines(counts: Counts) -> Iterator[_Shown]:
    told = time.monotonic()
    untold: list[Came] = []

    def show(came: Came, head: Head) -> None:
        nonlocal told
        counts.take(head)
        if head["state"] == "unopened":
            tell(f"not read: {head['location']}: {head['why']}")
        untold[:] = [came]
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            tell(counts.line(untold.pop()))

    yield show
    if untold:
        tell(counts.line(untold[0]))


@contextmanager
def _bar(counts: Counts) -> Iterator[_Shown]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("opening sources", total=1.0)

        def show(came: Came, head: Head) -> None:
            counts.take(head)
            rest = counts.rest(came.share)
            left = "" if rest is None else f", {_time(rest)} left"
            said = f"{counts.done:,} done, {counts.failed:,} failed, {counts.rate:.1f}/s{left}"
            progress.update(task, completed=came.share, description=said)

        yield show
