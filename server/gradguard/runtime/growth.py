"""Graphs that pile up from pass to pass (GG201, GG202), that nobody differentiates (GG204), or that are kept for
nothing (GG206, GG207).

Time is counted in pulses: a backward ends, or a module call in the user's code comes round again without one.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradguard.findings import Severity
from gradguard.runtime.carry import receiving
from gradguard.runtime.collect import Findings, Where
from gradguard.runtime.frames import Frames, Place, Site
from gradguard.runtime.graph import BackwardCall, LiveGraph, NodeRecord, node_of, record_of
from gradguard.runtime.referrers import common_container, filled, holds, kind_of, store_in_source
from gradguard.runtime.tracer import Tracer

FEWEST_PULSES = 4
FEWEST_ALIVE = 3
MOST_NODES = 20_000
MOST_SAMPLES = 2_000
MOST_SHARE = 0.05
MOST_ASKED = 3


@dataclass(slots=True)
class Timeline:
    """Samples of one repeated place: seconds since the start, live nodes, live saved bytes.

    When there are too many samples every second one is dropped; `stride` passes lie between two samples.
    """

    site: Site
    what: str
    passes: int = 0
    stride: int = 1
    samples: list[tuple[float, int, int]] = field(default_factory=list)

    def add(self, seconds: float, nodes: int, size: int) -> None:
        if self.passes % self.stride == 0:
            self.samples.append((seconds, nodes, size))
            if len(self.samples) > MOST_SAMPLES:
                self.samples = self.samples[::2]
                self.stride *= 2
        self.passes += 1


@dataclass(slots=True)
class Candidate:
    """Something that seems to pile up; `records` decide at the end whether a backward came after all."""

    code: str
    where: Where
    site: Site
    records: list[NodeRecord]
    container: str = ""
    fast: bool = False
    related: Where = None


@dataclass(slots=True)
class Retained:
    """All backwards of one place that asked to retain their graph."""

    site: Site
    calls: int = 0
    used_again: bool = False
    grew: bool = False


class Growth:
    """Samples live nodes and bytes, and finds who keeps them when they grow."""

    def __init__(
        self,
        findings: Findings,
        frames: Frames,
        graph: LiveGraph,
        tracer: Tracer,
        pulsed: Callable[[], None],
        sampled: bool,
    ) -> None:
        """`pulsed` is called at every new pulse. `sampled`: not all passes are watched."""
        self._findings = findings
        self._frames = frames
        self._graph = graph
        self._tracer = tracer
        self._pulsed = pulsed
        self._sampled = sampled
        self.started = time.perf_counter()
        self.spent = 0.0
        self.timelines: dict[tuple[int, int], Timeline] = {}
        self.candidates: dict[tuple[str, int], Candidate] = {}
        self.retained: dict[Place, Retained] = {}
        self.created: dict[Place, list[weakref.ref[Any]]] = {}
        self._next_look = FEWEST_ALIVE
        self._first_op: dict[Place, tuple[int, str]] = {}
        self._pulse_of_root: dict[Place, int] = {}
        self._watched: dict[int, Any] = {}

    # Pulses

    def see_root(self, site: Site, op: str) -> None:
        """An op inside a module call: if it is the first op of that call again, the call has come round."""
        place = site.root_place
        if place is None:
            return
        first = self._first_op.get(place)
        if first is None:
            self._first_op[place] = (site.number, op)
        elif first != (site.number, op):
            return
        use = self._graph.root_use(site)
        if use is not None:
            use.calls += 1
        self._sample(place, site, "forward")
        if self._pulse_of_root.get(place) == self._graph.pulse:
            self.pulse()
        self._pulse_of_root[place] = self._graph.pulse

    def pulse(self) -> None:
        self._tracer.clean(sys._getframe(1))
        self._graph.pulse += 1
        self._pulsed()
        alive = len(self._graph.alive_per_pulse)
        if alive < FEWEST_ALIVE:
            self._next_look = FEWEST_ALIVE
        elif alive >= self._next_look:
            self._next_look = alive * 2 if alive > 2 * FEWEST_PULSES else alive + 1
            elapsed = time.perf_counter() - self.started
            if self.spent < 0.05 + MOST_SHARE * elapsed:
                begin = time.perf_counter()
                self.look()
                self.spent += time.perf_counter() - begin

    def _sample(self, place: Place, site: Site, what: str) -> None:
        key = (id(place.code), place.instruction)
        timeline = self.timelines.get(key)
        if timeline is None:
            timeline = self.timelines[key] = Timeline(site, what)
        seconds = time.perf_counter() - self.started
        timeline.add(seconds, len(self._graph.live), self._graph.live_bytes)

    def after_step(self, site: Site) -> None:
        if site.inner is not None:
            self._sample(site.inner, site, "optimizer step")

    def after_backward(self, call: BackwardCall) -> None:
        if call.site.inner is not None:
            self._sample(call.site.inner, call.site, "backward")
        self._graph.era += 1
        self.pulse()

    def see_retained(self, call: BackwardCall) -> None:
        place = call.site.inner
        if place is None:
            return
        for record in call.records:
            if record.call is not None and record.call is not call and record.call.retain:
                earlier = record.call.site.inner
                if earlier is not None and earlier in self.retained:
                    self.retained[earlier].used_again = True
        if call.retain and not call.create and not call.failed:
            self.retained.setdefault(place, Retained(call.site)).calls += 1

    # Who keeps them

    def look(self) -> None:
        """Looks for tensors of the user that hold the graphs of many pulses."""
        held: list[tuple[NodeRecord, Any]] = []
        for record in list(self._graph.live.values()):
            out = record.result()
            node = node_of(out) if out is not None else None
            if node is not None and record_of(node) is record:
                held.append((record, out))
        by_site: dict[int, list[tuple[NodeRecord, Any]]] = defaultdict(list)
        for record, out in held:
            by_site[record.site.number].append((record, out))
        for group in by_site.values():
            pulses = len({record.pulse for record, _ in group})
            stored = pulses >= FEWEST_PULSES and self._see_stored(group)
            if not stored and not (pulses > 1 and self._see_turns(group)):
                self._see_chain(group[-1][1])
        held.clear()

    def _see_chain(self, out: Any) -> None:
        """One tensor whose graph repeats the same place in many pulses: it was accumulated."""
        order = _records_behind([out])
        pulses: dict[int, set[int]] = defaultdict(set)
        examples: dict[int, list[NodeRecord]] = defaultdict(list)
        for known in order:
            pulses[known.site.number].add(known.pulse)
            examples[known.site.number].append(known)
        for known in order:
            number = known.site.number
            if len(pulses[number]) >= FEWEST_PULSES or self._lasts(examples[number]):
                where = receiving(known.site)
                self._propose(
                    Candidate("GG201", where, known.site, examples[number][:64], fast=_bytes(order))
                )
                return

    def _see_turns(self, group: list[tuple[NodeRecord, Any]]) -> bool:
        """Several tensors accumulated at one place by turns: none of what was ever added there has been let go."""
        site = group[0][0].site
        order = _records_behind([out for _, out in group])
        added = [known for known in order if known.site is site]
        if len({known.pulse for known in added}) <= 2 * len(group) or len(added) != site.made:
            return False
        where = receiving(site)
        candidate = Candidate("GG201", where, site, added[:64], fast=_bytes(order))
        asked = [out for _, out in group[:MOST_ASKED]]
        container = common_container(asked, self._frames)
        if container is not None and holds(container, asked[0]):
            candidate.code, candidate.container = "GG202", kind_of(container)
        self._propose(candidate)
        return True

    def _lasts(self, records: list[NodeRecord]) -> bool:
        """Whether something done once in a while piles up: few yet, but old, and none has been let go."""
        eras = {record.era for record in records}
        old = self._graph.era - min(eras) >= FEWEST_PULSES - 1
        return old and len(eras) > 1 and len(records) == records[0].site.made

    def _see_stored(self, group: list[tuple[NodeRecord, Any]]) -> bool:
        """Tensors of one place from many pulses: whether a container stores them, rather than a graph."""
        container = common_container([out for _, out in group[:MOST_ASKED]], self._frames)
        if container is None:
            return False
        records = [record for record, _ in group]
        calls = {record.call.number for record in records if record.call is not None}
        backward_done = any(record.call is not None for record in records)
        if backward_done and len(calls) < FEWEST_PULSES - 1:
            return True
        site = records[0].site
        candidate = Candidate("GG202", site.inner, site, [] if backward_done else records[:64])
        candidate.fast = any(r.bytes and not r.released for r in records)
        self._find_store(candidate, container)
        self._propose(candidate)
        return True

    def _find_store(self, candidate: Candidate, container: Any) -> None:
        """Names the line that puts things into the container: watched in the next pass, guessed until then."""
        candidate.container = kind_of(container)
        guess = store_in_source(container, self._frames.user_files())
        candidate.related = candidate.where
        if guess is not None:
            candidate.where = guess
        if id(container) in self._watched:
            return
        self._watched[id(container)] = container
        length = [filled(container)]

        def grew(line: tuple[str, int]) -> bool:
            now = filled(container)
            if now > length[0]:
                candidate.where = line
                self.candidates[("GG202", candidate.site.number)] = candidate
                self._watched.pop(id(container), None)
                return False
            length[0] = now
            return True

        if not self._tracer.listen(grew, sys._getframe(1)):
            self._watched.pop(id(container), None)

    def _propose(self, candidate: Candidate) -> None:
        key = (candidate.code, candidate.site.number)
        known = self.candidates.get(key)
        if known is None:
            self.candidates[key] = candidate
        else:
            known.records = candidate.records
            known.fast = known.fast or candidate.fast

    # At the end

    def finish(self, complete: bool) -> None:
        self._watched.clear()
        # Of a graph that was recorded in a watched pass, a backward may have come in one that was not.
        covered = self._report_unused() if complete and not self._sampled else set()
        for candidate in self.candidates.values():
            if any(record.calls for record in candidate.records):
                continue
            place = candidate.site.root_place
            if place in covered and candidate.site.inner != place and candidate.code == "GG201":
                # The whole call is reported already: nothing inside it needs a graph.
                continue
            self._report(candidate)
        if not self._sampled:
            self._report_retained()

    def _report(self, candidate: Candidate) -> None:
        kept = "activations and nodes" if candidate.fast else "graph nodes"
        severity = Severity.WARNING if candidate.fast else Severity.INFORMATION
        related: list[tuple[Where, str]] = []
        if candidate.code == "GG201":
            message = f"The graph of every pass is chained on here: {kept} pile up."
        else:
            held = f"A {candidate.container}" if candidate.container else "Something"
            message = f"{held} stores tensors with their graphs from here: {kept} of every pass are kept."
            if candidate.related is not None and candidate.related != candidate.where:
                related.append((candidate.related, "the stored tensor is computed here"))
        self._findings.add(candidate.code, candidate.where, message, severity, related)

    def _report_unused(self) -> set[Place]:
        """Module calls in loops whose graphs no backward ever used."""
        covered: set[Place] = set()
        for use in self._graph.roots.values():
            place = use.site.root_place
            if place is None or use.executed or use.calls < FEWEST_PULSES - 1:
                continue
            covered.add(place)
            self._findings.add(
                "GG204",
                place,
                f"Recorded {use.recorded} graph nodes in {use.calls} calls, and no backward ever used one.",
                Severity.INFORMATION,
            )
        return covered

    def _report_retained(self) -> None:
        growing = self._findings.has("GG201") or self._findings.has("GG202")
        for place, retained in self.retained.items():
            if not retained.used_again:
                self._findings.add(
                    "GG206",
                    place,
                    "`retain_graph=True`, but no second backward went through any of these graphs"
                    + (", and they pile up." if growing else "."),
                    Severity.WARNING if growing else Severity.INFORMATION,
                )

    def see_create_graph(self, call: BackwardCall, leaves: list[Any]) -> None:
        """`backward(create_graph=True)` leaves a cycle of gradient and graph if `.grad` is not reset."""
        place = call.site.inner
        if place is None or not call.accumulate:
            return
        earlier = self.created.setdefault(place, [])
        alive = [t for t in (r() for r in earlier) if t is not None]
        if alive:
            self._findings.add(
                "GG207",
                place,
                "`backward(create_graph=True)` ties `.grad` and the graph into a cycle; gradients of an earlier pass "
                "are still alive.",
                Severity.WARNING,
            )
        del alive
        earlier[:] = [
            weakref.ref(leaf.grad) for leaf in leaves if leaf.grad is not None and leaf.grad.requires_grad
        ]


def _records_behind(tensors: list[Any]) -> list[NodeRecord]:
    """What is known of the graphs of some tensors, nearest first."""
    found: list[NodeRecord] = []
    seen: set[Any] = set()
    pending = deque(map(node_of, tensors))
    while pending and len(seen) < MOST_NODES:
        node = pending.popleft()
        if node is None or node in seen:
            continue
        seen.add(node)
        known = record_of(node)
        if known is not None:
            found.append(known)
        pending.extend(following for following, _ in node.next_functions)
    return found


def _bytes(records: list[NodeRecord]) -> bool:
    return any(record.bytes and not record.released for record in records)
