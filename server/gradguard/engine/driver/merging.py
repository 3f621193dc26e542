"""What the paths of an entry saw, put together: each mistake once, certain only if every surviving path has it and
none that was not tried could be without it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from gradguard.engine.domain.events import (
    BrokenGraph,
    DeviceUse,
    Event,
    GraphKept,
    GraphReleased,
    SavedTensorMutated,
    SecondBackward,
)


@dataclass(slots=True)
class Path:
    """What one path saw, and whether it came to its end."""

    events: list[Event]
    survived: bool
    answers: Mapping[Hashable, bool] = field(default_factory=dict)
    """How it answered each unknown condition that it asked."""
    trained: frozenset[ast.AST] = frozenset()
    """Where the leaves were made that a backward reached."""
    grounded: frozenset[ast.AST] = frozenset()
    """Calls of `backward` whose loss had a graph, or may have had one."""


Sights = set[tuple[Hashable, int]]
"""The instances of a mistake that one path is certain of, and how often it met each: see `Event.instances`."""


def merged(paths: list[Path]) -> list[Event]:
    """The events of an entry."""
    surviving = [path for path in paths if path.survived] or paths
    seen: dict[object, list[Event]] = {}
    sights: dict[object, list[Sights]] = {}
    for path in paths:
        mine: dict[object, Event] = {}
        instances: dict[object, Counter[Hashable]] = {}
        for event in path.events:
            if isinstance(event, BrokenGraph) and _whole_elsewhere(event, path, paths):
                continue
            key = event_key(event)
            known = mine.get(key)
            if known is None or _sureness(event) > _sureness(known):
                mine[key] = event
            if event.certain:
                instances.setdefault(key, Counter()).update(event.instances)
        for key, event in mine.items():
            seen.setdefault(key, []).append(event)
            if event.certain and (path.survived or surviving is paths):
                sights.setdefault(key, []).append(set(instances[key].items()))
    together = []
    released = {
        (e.place.node, e.loop.node) for path in paths for e in path.events if isinstance(e, GraphReleased)
    }
    told = [e for events in seen.values() for e in events if isinstance(e, DeviceUse) and e.settled]
    on_every_pass = {(e.place.node, e.how) for e in told if not e.guarded}
    seldom = {(e.place.node, e.how) for e in told if e.guarded} - on_every_pass
    for key, events in seen.items():
        if isinstance(events[0], GraphReleased):
            continue
        if isinstance(events[0], DeviceUse) and (events[0].place.node, events[0].how) in seldom:
            # A path that leaves the loop in its first pass has not seen that a condition decides.
            continue
        if isinstance(events[0], GraphKept) and (events[0].place.node, events[0].loop.node) in released:
            continue
        best = max(events, key=_sureness)
        sure = best.certain and len(sights.get(key, ())) == len(surviving)
        if sure:
            sure = _on_every_way(sights[key], surviving, paths)
        together.append(best if sure == best.certain else replace(best, certain=sure))
    return together


def _whole_elsewhere(event: BrokenGraph, path: Path, paths: list[Path]) -> bool:
    """Whether another path trains what this one cuts off, or has a graph where this one has none.

    if i % args.n_critic == 0: (-D(G(z)).mean()).backward()      trains `G`, which the critic's loss cuts off
    if name in heads: x = heads[name](x)                         brings the graph
    """
    if event.how in ("no-graph", "flag"):
        return event.loss is not None and any(event.loss.node in other.grounded for other in paths)
    return any(event.starved & (other.trained - path.trained) for other in paths)


def _on_every_way(sights: list[Sights], surviving: list[Path], paths: list[Path]) -> bool:
    """Whether a mistake that every surviving path has is on ways that were not tried, too.

    Either all have one and the same instance of it, or all answers were tried of the conditions that it hangs on.

        work(args.a, x); work(args.b, x); ...       a mistake in `work(True, ...)` alone: a path where all are false has none
        big(x) if args.big else small(x)            a mistake in what both call: there is no third way, whatever else is asked
    """
    if set.intersection(*sights):
        return True
    for key in surviving[0].answers:
        if _tells_apart(key, surviving, sights):
            return True
    apart = []
    for (one, its), (other, others) in combinations(zip(surviving, sights), 2):
        if its != others:
            apart.append(
                {key for key, answer in one.answers.items() if other.answers.get(key, answer) != answer}
            )
    # Of two paths that see it in other ways, the answers in which they differ tell why; one alone tells it best.
    hangs_on: set[Hashable] = set()
    for conditions in sorted(apart, key=len):
        if hangs_on.isdisjoint(conditions):
            hangs_on |= conditions
    return _exhausted([{key: path.answers[key] for key in hangs_on & path.answers.keys()} for path in paths])


def _tells_apart(key: Hashable, surviving: list[Path], sights: list[Sights]) -> bool:
    """Whether a mistake hangs on one condition, which all paths asked, and is the same wherever that has the same answer."""
    ways: dict[bool, Sights] = {}
    for path, its in zip(surviving, sights):
        way = path.answers.get(key)
        if way is None or ways.setdefault(way, its) != its:
            return False
    return len(ways) == 2


def _exhausted(tried: list[dict[Hashable, bool]]) -> bool:
    """Whether no answers are left that none of these has given; a path may not have come to ask for some of them."""
    if not all(tried):
        return True
    # Of all ways, a path takes one in two for each answer that it gave.
    if sum(0.5 ** len(answers) for answers in tried) < 1:
        return False
    split = next(iter(tried[0]))
    return all(
        _exhausted(
            [
                {key: answer for key, answer in answers.items() if key != split}
                for answers in tried
                if answers.get(split, way) is way
            ]
        )
        for way in (True, False)
    )


def shows(events: Iterable[Event]) -> bool:
    """Whether a path saw anything but what takes other sights back."""
    return any(not isinstance(event, GraphReleased) for event in events)


def _sureness(event: Event) -> float:
    # An error that some path does not catch is one.
    return (0 if event.certain is None else 1 + event.certain) + (0.5 if event.caught is None else 0)


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
    if isinstance(event, DeviceUse):
        return (
            type(event),
            event.place.node,
            event.how,
            event.guarded,
            event.loop.node if event.loop else None,
        )
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
