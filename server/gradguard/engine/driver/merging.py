"""What the paths of an entry saw, put together: each mistake once, certain only if every surviving path has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradguard.engine.domain.events import (
    Event,
    GraphKept,
    GraphReleased,
    HostRead,
    SavedTensorMutated,
    SecondBackward,
)


@dataclass(slots=True)
class Path:
    """What one path saw, and whether it came to its end."""

    events: list[Event]
    survived: bool


def merged(paths: list[Path]) -> list[Event]:
    """The events of an entry."""
    surviving = [path for path in paths if path.survived] or paths
    seen: dict[object, list[Event]] = {}
    counts: dict[object, int] = {}
    for path in paths:
        mine: dict[object, Event] = {}
        for event in path.events:
            key = event_key(event)
            known = mine.get(key)
            if known is None or _sureness(event) > _sureness(known):
                mine[key] = event
        for key, event in mine.items():
            seen.setdefault(key, []).append(event)
            counts[key] = counts.get(key, 0) + (path.survived and bool(event.certain))
    together = []
    released = {
        (e.place.node, e.loop.node) for path in paths for e in path.events if isinstance(e, GraphReleased)
    }
    for key, events in seen.items():
        if isinstance(events[0], GraphReleased):
            continue
        if isinstance(events[0], GraphKept) and (events[0].place.node, events[0].loop.node) in released:
            continue
        best = max(events, key=_sureness)
        sure = best.certain and counts[key] >= len(surviving)
        together.append(best if sure == best.certain else replace(best, certain=sure))
    return together


def shows(events: Iterable[Event]) -> bool:
    """Whether a path saw anything but what takes other sights back."""
    return any(not isinstance(event, GraphReleased) for event in events)


def _sureness(event: Event) -> int:
    return 0 if event.certain is None else 1 + event.certain


def event_key(event: Event) -> object:
    """Events with the same key are the same mistake."""
    if isinstance(event, SavedTensorMutated):
        maker = event.write.maker
        where = (event.place.node, event.saved.place.node, maker.node if maker is not None else None)
        return (SavedTensorMutated, *where, event.write.counted)
    if isinstance(event, SecondBackward):
        return (SecondBackward, event.place.node, event.second.node)
    if isinstance(event, (GraphKept, GraphReleased)):
        return (type(event), event.place.node, event.loop.node)
    if isinstance(event, HostRead):
        return (HostRead, event.place.node, event.how, event.guarded, event.loop.node if event.loop else None)
    return (type(event), event.place.node, getattr(event, "reason", ""), getattr(event, "how", ""))


def unique(events: Iterable[Event]) -> list[Event]:
    """The events of several entries, each mistake once."""
    found: dict[object, Event] = {}
    for event in events:
        key = event_key(event)
        known = found.get(key)
        if known is None or _sureness(event) > _sureness(known):
            found[key] = event
    return list(found.values())
