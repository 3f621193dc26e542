"""The driver: which sources are asked for, what has come back, and what is asked for again.

What a worker that died was at comes back missing, and nothing else does. It is asked for once more, each source in a task
of its own, and told when it is missing again. What comes back twice counts once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gradguard.fleet import archives
from gradguard.fleet.model import Kind, Source
from gradguard.fleet.work import TRIES, Row, Work

Head = dict[str, Any]
"""What came of a package, or of a source that has none."""


class Streams(Protocol):
    """What runs tasks."""

    def stream(
        self,
        rows: Sequence[Row],
        first: Callable[[Row], Iterator[Row]],
        then: Callable[[Row], Row],
        *,
        alone: bool = False,
    ) -> Iterator[Row]:
        """What `then` makes of each row that `first` makes of these."""
        ...


@dataclass(slots=True)
class Came:
    """What has come back so far."""

    sources: Sequence[Source]
    heads: dict[tuple[int, int], Head] = field(default_factory=dict)
    _parts: dict[int, int] = field(default_factory=dict)
    _of: dict[int, int] = field(default_factory=dict)

    def take(self, head: Head) -> bool:
        """Keep what came; False where it had come before."""
        index, part = head["source"], head["part"]
        if (index, part) in self.heads:
            return False
        source = self.sources[index]
        head |= {"package": name_of(source, head.get("root", "")), "location": source.location}
        head |= {"kind": source.kind.value, "revision": head.get("revision", source.revision)}
        self.heads[index, part] = head
        self._of[index] = head["parts"]
        self._parts[index] = self._parts.get(index, 0) + 1
        return True

    def whole(self, index: int) -> bool:
        """Whether all packages of a source are there."""
        return self._parts.get(index, 0) == self._of.get(index, -1)

    @property
    def missing(self) -> list[int]:
        """Sources of which something is not there."""
        return [index for index in range(len(self.sources)) if not self.whole(index)]

    @property
    def share(self) -> float:
        """How much of all is there, from 0 to 1, each source for as much."""
        if not self.sources:
            return 1.0
        return sum(self._parts[index] / self._of[index] for index in self._parts) / len(self.sources)

    def given_up(self) -> None:
        """Say of what is still missing that it is lost."""
        for index in self.missing:
            parts = self._of.get(index, 0)
            lost = parts - self._parts.get(index, 0)
            what = f"{lost} of its {parts} packages were" if parts else "it was"
            why = f"{what} lost with the worker that read it, {TRIES} times"
            self._of[index] = self._parts.get(index, 0) + 1
            self.take(
                {"source": index, "part": -1, "parts": self._of[index], "state": "unopened", "why": why}
            )


def run(
    sources: Sequence[Source], work: Work, cluster: Streams, seen: Callable[[Came, Head], object]
) -> Came:
    """Scan all sources; `seen` is told of each package as it is there."""
    came = Came(sources)
    for attempt in range(TRIES):
        missing = came.missing
        if not missing:
            break
        rows = [
            {"head": json.dumps({"index": index, "source": sources[index].plain()}), "blob": b""}
            for index in missing
        ]
        for row in cluster.stream(rows, work.open, work.check, alone=attempt > 0):
            head = json.loads(row["head"])
            if came.take(head):
                seen(came, head)
    before = set(came.heads)
    came.given_up()
    for key in came.heads.keys() - before:
        seen(came, came.heads[key])
    return came


def name_of(source: Source, root: str) -> str:
    """The name of a package: that of its source, and where in it the package has its root."""
    if source.kind is Kind.ARCHIVE:
        first, _, rest = root.partition("/")
        root = rest if first == archives.stem(source.location) else root
    return f"{source.name}/{root}" if root else source.name
