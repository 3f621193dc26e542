"""How many passes of a loop are run that has more than are run.

Two passes show what one hands on to the next. Inside a later pass of a loop around it, this has been shown already: there one
pass is enough, which shows what the loop around hands on, unless it goes another way than the passes before.

    for epoch in range(epochs):
        for batch in loader:        two passes in the first epoch, one in the second
            if epoch > 0: ...       two in the second, too: its first pass is not like those of the first epoch
"""

from __future__ import annotations

import ast

from gradguard.engine.domain.loops import Branch, Loop
from gradguard.engine.state.run import Run


class Passes:
    """The passes of one loop."""

    def __init__(self, run: Run, node: ast.stmt, loop: Loop) -> None:
        self._run, self._loop = run, loop
        around = [one for one in run.loops if one is not loop]
        again = any(one.iteration for one in around)
        where = (node, around[0].number if around else 0, tuple([id(place.node) for place in run.calls]))
        self._where = where
        self._before: set[Branch] | None = run.shown.get(where) if again else None
        self._outside = run.branches
        self._gone: set[Branch] = set()
        run.branches = self._gone

    def enough(self) -> bool:
        """Whether the pass that has just ended needs no other one. Before the first pass it is False."""
        loop = self._loop
        return (
            self._before is not None
            and loop.long
            and not loop.late
            and loop.passes == 1
            and self._gone <= self._before
        )

    def end(self) -> None:
        """The loop ends."""
        self._outside |= self._gone
        self._run.branches = self._outside
        if self._loop.passes > 1:
            self._run.shown.setdefault(self._where, set()).update(self._gone)
