"""A progress bar on a terminal, for runs that take long enough to wonder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE = 0.7
"""Seconds until a bar appears."""


def shown(items: Iterable[Item], total: int) -> Iterator[Item]:
    """The same items, with a bar on the terminal of stderr while they come."""
    if not sys.stderr.isatty():
        yield from items
        return
    started = time.monotonic()
    with ExitStack() as stack:
        advance: Callable[[], None] | None = None
        for done, item in enumerate(items, 1):
            if advance is None and time.monotonic() - started > PATIENCE:
                advance = _bar(stack, total, done)
            elif advance is not None:
                advance()
            yield item


def _bar(stack: ExitStack, total: int, done: int) -> Callable[[], None]:
    # Slow to load, and few look on.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    progress = stack.enter_context(
        Progress(
            TextColumn("checking"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
    )
    task = progress.add_task("checking", total=total, completed=done)
    return lambda: progress.advance(task)
