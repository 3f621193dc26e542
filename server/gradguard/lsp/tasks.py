"""What goes on in the background of the event loop."""

from __future__ import annotations

import asyncio
from typing import Any


class Tasks:
    """Holds tasks until they are done: the loop itself holds them weakly."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[Any]] = set()

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)
