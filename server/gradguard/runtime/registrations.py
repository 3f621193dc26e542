"""Hooks that the program registers at one place again and again (GG209)."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

from gradguard.findings import Severity
from gradguard.runtime.frames import Place
from gradguard.runtime.run_state import RunState

FEWEST = 3
"""Hooks of one place on one object after which it shows that there will be more."""


MOST_OWNERS = 10_000


class Registrations:
    """Every hook of a tensor or module has a handle, which knows the hooks it stands among."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._made: dict[tuple[Place, int], list[tuple[weakref.ref[Any], int]]] = {}

    def see(self, handle: Any, hooks: Any, frame: FrameType) -> None:
        """`handle` was made for the hook that now goes into `hooks`."""
        place = self._state.frames.site(frame).inner
        if place is None:
            return
        if len(self._made) > MOST_OWNERS:
            # Tensors of passes long gone had hooks, too.
            self._made.clear()
        made = self._made.setdefault((place, id(hooks)), [])
        # Those that were removed are out of the hooks, and one that somebody holds may be removed later.
        made[:] = [(ref, key) for ref, key in made if ref() is None and key in hooks]
        if len(made) + 1 >= FEWEST:
            self._state.findings.add(
                "GG209",
                place,
                "Another hook is registered here on something that has those of earlier passes still, and nobody holds "
                "their handles: all of them run.",
                Severity.WARNING,
            )
        made.append((weakref.ref(handle), handle.id))
