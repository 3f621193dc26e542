"""What repairs of a program come to: worked out by the worker, behind what is typed, and only when asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from gradguard.check.api import Report
from gradguard.check.catalogue import catalogue
from gradguard.check.selection import widened
from gradguard.check.workspace import Overlaid
from gradguard.findings import Finding, Limit, Span
from gradguard.ide.actions import Change, Everything, Offer, every, everywhere, holding, in_place
from gradguard.ide.analysis import Again, Analyser, Analysis, analysis, said
from gradguard.ide.edits import Cell
from gradguard.ide.wording import Wording
from gradguard.lsp.files import View
from gradguard.lsp.loading import InForce
from gradguard.lsp.programs import Program, Programs
from gradguard.lsp.snapshot import Snapshot
from gradguard.lsp.worker import Urgency, Worker
from gradguard.source.text import Source

log = logging.getLogger(__name__)
T = TypeVar("T")


class Repairs:
    """Repairs of the open programs. All methods are for the loop's thread."""

    def __init__(
        self,
        programs: Programs,
        analyser: Analyser,
        worker: Callable[[], Worker],
        view: Callable[[InForce], View],
        told: Callable[[str, Iterable[Limit]], None],
    ) -> None:
        """told: is given faults of our own, with the path of the program they were met in."""
        self._programs, self._analyser, self._worker = programs, analyser, worker
        self._view, self._told = view, told
        self._tried: dict[str, Analysis] = {}
        """Touched by the worker's thread: the text that a fix was tried with last, by program."""

    def forget(self, key: str) -> None:
        """A program is closed, or nobody looks at it."""
        self._tried.pop(key, None)

    async def fixed(self, program: Program, snapshot: Snapshot, cell: Cell) -> tuple[Change, ...] | None:
        """The edits that make every safe fix in a cell of a program; None where there are none or the text changed."""
        faults: list[Limit] = []
        changes = await self._worked_out(
            program, snapshot, lambda found, view: every(found, cell, view, self._analyser, faults)
        )
        self._told(snapshot.path, faults)
        return changes

    async def fixed_everywhere(self, program: Program, snapshot: Snapshot) -> Everything | None:
        """The same for all cells of a program; None where the text changed."""
        faults: list[Limit] = []
        everything = await self._worked_out(
            program,
            snapshot,
            lambda found, view: everywhere(found, snapshot.starts, view, self._analyser, faults),
        )
        self._told(snapshot.path, faults)
        return everything

    async def repairable(
        self, program: Program, snapshot: Snapshot, findings: Sequence[Finding]
    ) -> Sequence[Finding]:
        """Findings of a program with the fixes that may be offered; none where the text changed.

        What was tried once for an answer is known as long as the answer stands.
        """
        new = [each for each in findings if each.fixes and each not in program.tried]
        own = [each for each in new if program.analysis and each in program.analysis.findings]
        faults: list[Limit] = []
        if own:

            def try_own(found: Analysis, view: View) -> list[Finding]:
                wide = widened(found.settings, catalogue())
                again = Again(wide, view, self._analyser, self._tried.pop(program.key, None))
                before = said(found) if wide == found.settings else again(found.source)
                held = list(holding(own, found.source, before, again, faults))
                if again.before is not None:
                    self._tried[program.key] = again.before
                return held

            held = await self._worked_out(program, snapshot, try_own)
            if held is None:
                return ()
            program.tried.update(zip(own, held))
        for other, theirs in self._told_by(program, [each for each in new if each not in own]):

            def try_theirs(
                found: Analysis, view: View, other: Program = other, theirs: list[Finding] = theirs
            ) -> list[Finding]:
                assert other.analysis is not None
                assert other.force is not None
                text, settings = other.analysis.source.text, other.force.settings
                around = self._view(other.force)

                def check(source: Source) -> Report:
                    beside = Overlaid(around, source)
                    return said(analysis(Source(other.snapshot.path, text), settings, beside, self._analyser))

                return list(holding(theirs, found.source, said(other.analysis), check, faults))

            held = await self._worked_out(program, snapshot, try_theirs)
            if held is None:
                return ()
            program.tried.update(zip(theirs, held))
        self._told(snapshot.path, faults)
        return [program.tried.get(each, each) for each in findings]

    def _told_by(
        self, program: Program, findings: Sequence[Finding]
    ) -> Iterator[tuple[Program, list[Finding]]]:
        """The programs that found something in another's file, with what each of them did."""
        path = program.snapshot.path
        for other in self._programs.speakers(path) if findings else ():
            if other is program or other.analysis is None:
                continue
            known = {(each.code, each.span) for each in said(other.analysis).elsewhere if each.path == path}
            theirs = [each for each in findings if (each.code, each.span) in known]
            if theirs:
                yield other, theirs

    async def in_place(
        self, program: Program, snapshot: Snapshot, span: Span, wording: Wording
    ) -> list[Offer]:
        """In-place forms of what stands at a stretch, those that are proven; none where the text changed."""
        offers = await self._worked_out(
            program, snapshot, lambda found, view: in_place(found, span, wording, view)
        )
        return offers or []

    async def _worked_out(
        self, program: Program, snapshot: Snapshot, work: Callable[[Analysis, View], T | None]
    ) -> T | None:
        """What the worker makes of a program's analysis; None where the text changed."""
        found, force = program.analysis, program.force
        if found is None or force is None or program.of is not snapshot or not program.fresh:
            return None
        if program.resting:
            return None
        result: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def job() -> T | None:
            if program.snapshot.stamp != snapshot.stamp:  # its trees may have moved with a newer text
                return None
            return work(found, self._view(force))

        def done(value: T | None) -> None:
            if not result.done():
                result.set_result(value if program.snapshot.stamp == snapshot.stamp else None)

        def failed(error: BaseException) -> None:
            log.error("no edits for %s: %r", snapshot.path, error)
            done(None)

        self._worker().submit(f"edits:{id(result)}", job, done, failed, Urgency.DEPENDENT)
        return await result
