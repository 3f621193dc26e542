"""What the server knows: open texts, the programs they form, and the latest answer for each.

Everything here runs on the event loop's thread. A *program* is what is analysed together: a document, or the
cells of a notebook. Each edit gives its program a new stamp and a job for the worker; an answer counts only
if no newer stamp was given in the meantime.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from lsprotocol import types as lsp

from gradguard.check.api import ordered
from gradguard.check.ignores import UNUSED
from gradguard.check.settings import DEFAULTS
from gradguard.check.workspace import EMPTY, LONGEST
from gradguard.findings import Finding, Limit, Span
from gradguard.ide.analysis import Analyser, Analysis, analysis
from gradguard.ide.standing import from_here
from gradguard.ide.wording import Wording
from gradguard.lsp import threads
from gradguard.lsp.client import Client
from gradguard.lsp.configuration import Wrong
from gradguard.lsp.documents import Documents, document, path_of
from gradguard.lsp.files import Disk, View
from gradguard.lsp.loading import InForce
from gradguard.lsp.lookout import Lookout
from gradguard.lsp.programs import Program, Programs
from gradguard.lsp.recent import Recent
from gradguard.lsp.repairs import Repairs
from gradguard.lsp.snapshot import Snapshot, of_cells, of_document
from gradguard.lsp.worker import Urgency, Worker
from gradguard.source.text import Source

log = logging.getLogger(__name__)
T = TypeVar("T")

GATE = "torch"
AWAKE = 400_000
"""Characters of the texts whose trees and tapes are kept: there are some 450 objects for a thousand of them."""
AHEAD = 4
"""Programs to be analysed for another reason than an edit of theirs that are given to the worker at a time."""


class Session:
    """State of one connection. `answered` and `gone` are called when a program's answer changed or it was closed."""

    def __init__(
        self,
        analyser: Analyser,
        *,
        answered: Callable[[Program], None],
        gone: Callable[[Program], None],
        crashed: Callable[[str, str], None],
        trace: Callable[[str], None],
        wrong: Wrong,
        hangs: Callable[[str], None],
        answers: Callable[[str], None],
        refused: Callable[[str], None],
    ) -> None:
        self.client = Client()
        self.encoding = "utf-16"
        self.wording = Wording("en")
        self.lookout = Lookout(wrong=wrong, hangs=hangs, answers=answers, changed=self.refresh)
        self.configuration, self.observed = self.lookout.configuration, self.lookout.observed
        self.documents = Documents()
        self.programs = Programs()
        self.disk = Disk(self.lookout.disk)
        self.analyser = analyser
        self._answered, self._gone, self._crashed, self._trace = answered, gone, crashed, trace
        self._refused = refused
        self._stamps = itertools.count(1)
        self._stale: dict[str, None] = {}
        """Keys of programs to be analysed anew, the first to come first; `_ahead` are those given to the worker."""
        self._ahead: set[str] = set()
        self._feeding = False
        self._awake = Recent(AWAKE)
        self._configured = False
        self._worker: Worker | None = None
        self._latest: dict[str, Analysis] = {}
        """Touched by the worker's thread: what the next version of a program builds on."""
        self.repairs = Repairs(self.programs, analyser, lambda: self.worker, self.view, self.crashed)

    @property
    def worker(self) -> Worker:
        """The thread that analyses, started on first use."""
        if self._worker is None:
            self._worker = Worker(asyncio.get_running_loop())
        return self._worker

    def configured(self) -> None:
        """Settings are known: answer what was asked for until now."""
        if not self._configured:
            self._configured = True
            self.refresh()
            for program in self.programs:
                program.refreshed = False

    def warm_up(self) -> None:
        """Load the engine while the client is still busy with itself, and what fixes need behind everything else.

        Without threads that would keep the first answer waiting: what fixes need is then loaded when one is asked for.
        """

        def engine() -> None:
            analysis(Source("", f"import {GATE}\n"), DEFAULTS, EMPTY, self.analyser)

        def fixes() -> None:
            problem = importlib.import_module("gradguard.fixes.api").problem()
            if problem:
                log.warning(problem)
            # What was loaded stays: no later collection needs to look at it.
            gc.collect()
            gc.freeze()

        def nothing(_: object) -> None:
            return

        self.lookout.start()
        self.worker.submit("warm-up", engine, nothing, nothing)
        if threads.there_are():
            self.worker.submit("warm-up fixes", fixes, nothing, nothing, Urgency.BACKGROUND)

    def stop(self) -> None:
        """Begin nothing further and let nobody wait."""
        if self._worker is not None:
            self._worker.stop()
        self.lookout.stop()
        for program in self.programs:
            self._release(program)

    # Documents

    def opened(self, item: lsp.TextDocumentItem) -> None:
        """A document is open from now on."""
        opened = document(item)
        if not opened.python:
            log.info("not Python, left alone: %s (%s)", item.uri, item.language_id)
        self.documents.put(opened)
        program = self.program(item.uri)
        if program is not None:
            self._touch(program)
            return
        self._add(Program(item.uri, of_document(opened, next(self._stamps))), [item.uri])

    def changed(
        self, uri: str, version: int | None, changes: Sequence[lsp.TextDocumentContentChangeEvent]
    ) -> None:
        """A document was edited."""
        before = self.documents.get(uri)
        if before is None:
            log.warning("an edit to a document that is not open: %s", uri)
            return
        self.documents.put(before.edited(version, changes, self.encoding))
        program = self.program(uri)
        if program is not None:
            program.saved = program.refreshed = False
            self._touch(program)

    def saved(self, uri: str) -> None:
        """A document was saved: with `run = onSave` its findings are shown now."""
        self._saved(self.program(uri))

    def closed(self, uri: str) -> None:
        """A document is no longer open."""
        self.documents.drop(uri)
        program = self.program(uri)
        if program is not None and program.key == uri:
            self._remove(uri)

    # Notebooks

    def notebook_opened(self, params: lsp.DidOpenNotebookDocumentParams) -> None:
        """A notebook is open from now on."""
        for item in params.cell_text_documents:
            self.documents.put(document(item))
        uri = params.notebook_document.uri
        cells = [_code(cell) for cell in params.notebook_document.cells]
        self._add(Program(uri, self._of_cells(uri, cells), cells), [cell for cell in cells if cell])

    def notebook_changed(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        """Cells of a notebook were edited, added, moved or removed."""
        uri = params.notebook_document.uri
        program = self.programs.get(uri)
        if program is None or program.cells is None:
            log.warning("an edit to a notebook that is not open: %s", uri)
            return
        change = params.change.cells
        if change is None:
            return
        if change.structure is not None:
            self._restructure(program, program.cells, change.structure)
        for content in change.text_content or ():
            before = self.documents.get(content.document.uri)
            if before is not None:
                self.documents.put(before.edited(content.document.version, content.changes, self.encoding))
        program.saved = program.refreshed = False
        self._touch(program)

    def _restructure(
        self, program: Program, cells: list[str], structure: lsp.NotebookDocumentCellChangeStructure
    ) -> None:
        for item in structure.did_open or ():
            self.documents.put(document(item))
        array = structure.array
        cells[array.start : array.start + array.delete_count] = [_code(cell) for cell in array.cells or ()]
        for closed in structure.did_close or ():
            self.documents.drop(closed.uri)
            self.programs.disown(closed.uri)
        for cell in array.cells or ():
            if _code(cell):
                self.programs.own(program, cell.document)

    def notebook_closed(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        """A notebook is no longer open."""
        self._remove(params.notebook_document.uri)
        for item in params.cell_text_documents:
            self.documents.drop(item.uri)

    def notebook_saved(self, uri: str) -> None:
        """A notebook was saved, see `saved`."""
        self._saved(self.programs.get(uri))

    # Answers

    def program(self, uri: str) -> Program | None:
        """The program that an open document belongs to."""
        return self.programs.of(uri)

    async def current(self, uri: str, patience: float, *, whole: bool = True) -> Program | None:
        """The program of a document with an answer for its current version, waiting for that if need be.

        None when the document is not open, was closed, or the wait (seconds) was in vain. whole: with what only
        those need who ask about a place in it.
        """
        end = time.monotonic() + patience
        while True:
            program = self.program(uri)
            if program is None or (program.fresh and not (whole and program.resting)):
                return program
            if program.stale or program.fresh:
                self._touch(program)
            self.lookout.hurry(program.snapshot.path)
            self.worker.hurry(program.key)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            program.waiters.append(waiter)
            try:
                await asyncio.wait_for(waiter, max(end - time.monotonic(), 0.001))
            except asyncio.TimeoutError:
                return None

    def crashed(self, path: str, faults: Iterable[Limit]) -> None:
        """Tell faults of our own that were met."""
        for fault in faults:
            self._crashed(path, fault.fault)

    def view(self, force: InForce) -> View:
        """Other files as an analysis under these settings sees them."""
        return View(self.disk, self.documents.texts, force)

    def findings(self, program: Program) -> tuple[Finding, ...]:
        """What is shown for a program: its own findings, those of others in it, and observed ones.

        All of them at their places in what is read.
        """
        if program.analysis is None or program.of is None:
            return ()
        path, text = program.of.path, program.of.text
        typed: list[Finding] = []
        needed: set[tuple[str, Span]] = set()
        for other in self.programs.speakers(path):
            if other is not program and other.analysis and other.seen.get(path) == text:
                typed.extend(each for each in other.analysis.elsewhere if each.path == path)
        for other in self.programs.readers(path):
            if other is not program and other.analysis and other.seen.get(path) == text:
                needed.update(other.analysis.outcome.report.needed)
        typed.extend(self._for_closed(program))
        if program.analysis.settings.observed:
            typed.extend(self.observed.findings(path, text))
        found = [*program.analysis.findings, *program.of.read(typed)]
        return tuple(
            each
            for each in ordered(found)
            # What is silenced for another file that is open is not unused.
            if each.code != UNUSED[0] or not any((path, plan.span) in needed for plan in each.fixes)
        )

    def _for_closed(self, program: Program) -> Iterator[Finding]:
        """Findings of a program in files that are not open: where it leads there, as typed, with the place itself as related."""
        assert program.analysis is not None
        for each in program.analysis.elsewhere:
            if each.path == program.snapshot.path or any(
                other.analysis is not None for other in self.programs.at(each.path)
            ):
                continue
            found = from_here(each, program.analysis.source)
            if found is not None:
                yield found

    def refresh(self, programs: Iterable[Program] | None = None) -> None:
        """Analyse again although the texts are the same: settings or other files changed."""
        for program in self.programs if programs is None else programs:
            program.refreshed = program.stale = True
            self._stale[program.key] = None
        self._feed()

    # Inner workings

    def _feed(self) -> None:
        """Give the worker a few of those that are to be analysed anew.

        All of them at once would make an edit of what thousands import wait for thousands of jobs to be made.
        """
        if self._feeding or not self._configured:
            return
        self._feeding = True
        try:
            while self._stale and len(self._ahead) < AHEAD:
                program = self.programs.get(next(iter(self._stale)))
                if program is None or not program.stale:
                    del self._stale[next(iter(self._stale))]
                    continue
                self._ahead.add(program.key)
                self._touch(program, Urgency.DEPENDENT)
        finally:
            self._feeding = False

    def _add(self, program: Program, uris: Sequence[str]) -> None:
        before = self.programs.get(program.key)
        if before is not None:
            self._release(before)
        self.programs.add(program, uris)
        self._schedule(program, Urgency.OPENED)

    def _remove(self, key: str) -> None:
        program = self.programs.get(key)
        if program is None:
            return
        path, targets = program.snapshot.path, program.targets
        speakers = self.programs.speakers(path)
        self.programs.remove(program)
        self.worker.cancel(key)
        self._latest.pop(key, None)
        self.repairs.forget(key)
        if path not in self.documents.texts:
            self.disk.forget_buffer(path)
        self._release(program)
        self._gone(program)
        self._answer_again(targets)
        self._tell_again(speakers)
        self._stale.pop(key, None)
        self._ahead.discard(key)
        self._awake.drop(key)
        self.refresh(self.programs.readers(path))

    def _saved(self, program: Program | None) -> None:
        if program is not None and not program.saved:
            program.saved = True
            if program.fresh:
                self._answered(program)

    def _touch(self, program: Program, urgency: Urgency = Urgency.TYPING) -> None:
        stamp = next(self._stamps)
        program.stale = False
        self._stale.pop(program.key, None)
        if program.cells is None:
            document = self.documents.get(program.key)
            if document is None:  # it is the cell of a notebook by now
                self._ahead.discard(program.key)
                return
            program.snapshot = of_document(document, stamp)
        else:
            program.snapshot = self._of_cells(program.key, program.cells, stamp)
        self._schedule(program, urgency)

    def _of_cells(self, uri: str, cells: Sequence[str], stamp: int | None = None) -> Snapshot:
        found = (self.documents.get(cell) for cell in cells)
        documents = tuple(each for each in found if each is not None and each.python)
        return of_cells(uri, path_of(uri), next(self._stamps) if stamp is None else stamp, documents)

    def _schedule(self, program: Program, urgency: Urgency) -> None:
        if not self._configured:  # nothing is shown that the user's settings may forbid
            return
        snapshot = program.snapshot
        force = self.configuration.known(snapshot.path)
        program.force = force or program.force
        speaks = GATE in snapshot.text and all(each.python for each in snapshot.documents)
        refused = speaks and len(snapshot.text) > LONGEST
        if refused and not program.refused:
            self._refused(snapshot.path)
        program.refused = refused
        if refused or not speaks or (force is not None and (force.excluded or not force.settings.enable)):
            self.worker.cancel(program.key)
            self._latest.pop(program.key, None)
            self._settle(program, snapshot, None, {})
            return
        if force is None:
            program.urgency = min(urgency, program.urgency)
            self.lookout.load(snapshot.path, partial(self._go_on, snapshot.path))
            return
        program.urgency = Urgency.BACKGROUND

        def work() -> tuple[Analysis, dict[str, str | None], float]:
            start = time.perf_counter()
            before = self._latest.get(snapshot.key)
            view = self.view(force)
            breaks = snapshot.starts[1:] if snapshot.notebook else ()
            source = Source.edited(snapshot.path, snapshot.text, before.source if before else None, breaks)
            found = analysis(source, force.settings, view, self.analyser, before)
            self._latest[snapshot.key] = found
            return found, view.seen, time.perf_counter() - start

        def done(result: tuple[Analysis, dict[str, str | None], float]) -> None:
            found, seen, seconds = result
            if self.programs.get(snapshot.key) is not program:
                self._latest.pop(snapshot.key, None)
                return
            self._trace(
                f"analysed {snapshot.path} in {seconds * 1000:.1f} ms: {len(found.findings)} findings, "
                f"{len(found.limits)} limits"
            )
            if found.outcome.report.crash:
                self._crashed(snapshot.path, found.outcome.report.crash)
            if program.snapshot.stamp == snapshot.stamp:
                self._settle(program, snapshot, found, seen)

        def failed(error: BaseException) -> None:
            self._crashed(snapshot.path, repr(error))
            if program.snapshot.stamp == snapshot.stamp and self.programs.get(snapshot.key) is program:
                self._settle(program, snapshot, None, {})

        self.worker.submit(program.key, work, done, failed, urgency)

    def _go_on(self, path: str) -> None:
        """Settings for a path are known."""
        for program in self.programs.at(path):
            if not program.fresh:
                self._schedule(program, program.urgency)

    def _settle(
        self, program: Program, snapshot: Snapshot, found: Analysis | None, seen: dict[str, str | None]
    ) -> None:
        self._ahead.discard(program.key)
        first = (program.analysis is None) is not (found is None)
        targets = self.programs.answer(program, snapshot, found, seen)
        self._rest(program)
        self._release(program)
        try:
            self._answered(program)
            self._answer_again(targets, program)
            if first:
                self._tell_again(self.programs.speakers(snapshot.path))
        finally:
            self.refresh([*self._outdated(snapshot.path, program), *self._behind(program)])

    def _rest(self, answered: Program) -> None:
        """Let go of trees and tapes of programs that nobody looks at: collecting garbage looks at all there are.

        They keep their findings. Who asks about a place in one has it analysed anew.
        """
        answered.resting = False
        if answered.analysis is None or answered.cells is not None:
            self._awake.drop(answered.key)
            return
        for key in self._awake.use(answered.key, len(answered.snapshot.text)):
            program = self.programs.get(key)
            if program is not None and program.fresh and program.analysis is not None:
                program.resting = True
                program.analysis = self._latest[key] = program.analysis.without_tape()
                self.repairs.forget(key)

    def _outdated(self, path: str, but: Program) -> Iterator[Program]:
        """Programs whose answer rests on another text of the file at a path than the present one."""
        text = self.documents.texts.get(path)
        for each in self.programs.readers(path):
            if each is not but and not each.stale and each.seen.get(path) != text:
                yield each

    def _behind(self, program: Program) -> Iterator[Program]:
        """The program itself, if a text that its answer rests on was edited before the answer came.

        Where the newer text is not answered yet, its answer will say so.
        """
        texts = self.documents.texts
        for path, text in program.seen.items():
            if texts.get(path, text) != text and all(each.fresh for each in self.programs.at(path)):
                yield program
                return

    def _answer_again(self, paths: Iterable[str], but: Program | None = None) -> None:
        """Show anew what is found in the files at these paths: another program speaks of them."""
        for path in paths:
            for other in self.programs.at(path):
                if other is not but and other.fresh:
                    self._answered(other)

    def _tell_again(self, programs: Iterable[Program]) -> None:
        """Show these anew: a file that they speak of is open from now on, or no longer."""
        for each in programs:
            if each.fresh and self.programs.get(each.key) is each:
                each.refreshed = True
                self._answered(each)

    def _release(self, program: Program) -> None:
        for waiter in program.waiters:
            if not waiter.done():
                waiter.set_result(None)
        program.waiters.clear()


def _code(cell: lsp.NotebookCell) -> str:
    return cell.document if cell.kind == lsp.NotebookCellKind.Code else ""
