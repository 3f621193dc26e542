"""Check one file after the other, with what is shared between them: imports that were read, the cache.

A `Checker` lives once in each process of a run.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gradguard.check.api import GATE, Report, check, lost, ordered
from gradguard.check.catalogue import catalogue
from gradguard.check.ignores import UNUSED
from gradguard.check.rechecking import Rechecking
from gradguard.check.selection import widened
from gradguard.check.settings import Settings, options
from gradguard.check.workspace import LONGEST, TOO_LONG, Overlaid, ReadingWorkspace, Workspace, source_roots
from gradguard.cli import plain
from gradguard.cli.cache import Cache, digest
from gradguard.cli.result import Trouble, Unread
from gradguard.disk.links import Bounds
from gradguard.disk.reading import Missing, Unreadable, decode, read_bytes, read_file
from gradguard.findings import Finding
from gradguard.ide.edits import Edits, Writer
from gradguard.ide.trial import Trials
from gradguard.source.decode import Decoded
from gradguard.source.ipynb import SUFFIX, read_notebook
from gradguard.source.text import Source


@dataclass(frozen=True, slots=True)
class Job:
    """One file to check. `data` is set where its bytes do not come from the disk."""

    path: str
    settings: Settings
    named: bool = False
    data: bytes | None = None
    shows: frozenset[str] = frozenset()
    """Where this is checked only because it imports what was asked for: the files that were."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a job."""

    path: str
    report: Report = field(default_factory=Report)
    troubles: tuple[Trouble, ...] = ()
    uses_torch: bool = False
    edits: tuple[tuple[Finding, tuple[Edits | None, ...]], ...] = ()
    imported: tuple[Trouble, ...] = ()
    """Files that imports lead to and that cannot be read, each told once by each process."""
    caller: bool = False
    """Whether nobody asked for the file, which imports what was asked for."""


def merged(checked: Sequence[Checked]) -> tuple[Finding, ...]:
    """The findings of files that were checked together: each once, an ignore comment that another file needed not as unused."""
    needed = {place for each in checked for place in each.report.needed}
    return ordered(
        finding
        for each in checked
        for finding in (*each.report.findings, *each.report.elsewhere)
        if finding.code != UNUSED[0] or not any((finding.path, plan.span) in needed for plan in finding.fixes)
    )


def _of_caller(checked: Checked, shows: frozenset[str]) -> Checked:
    """What a file that nobody asked for shows of those that were: mistakes in them, and its own that begin there."""
    report = checked.report
    kept = replace(
        report,
        findings=tuple(
            each for each in report.findings if any(place.path in shows for place in each.related)
        ),
        elsewhere=tuple(each for each in report.elsewhere if each.path in shows),
        limits=tuple(each for each in report.limits if each.fault or each.path in shows),
    )
    return replace(checked, report=kept, troubles=(), caller=True)


COLLECT_AFTER = 100_000, 10, 20
"""When garbage is collected while a file is checked: an analysis makes many objects and frees nearly all by itself."""


class Checker:
    """Checks files; `with_edits` also turns the plans of fixes into edits."""

    def __init__(self, cache: Cache | None, *, with_edits: bool = False) -> None:
        self._cache = cache
        self._with_edits = with_edits
        self._workspaces: dict[tuple[object, ...], ReadingWorkspace] = {}
        self._digests: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        """Why files have no digest."""
        self._unread: dict[str, str] = {}
        """Files that imports lead to and that cannot be read, with the reason."""
        self._told: set[str] = set()
        self._again: tuple[Job, Rechecking] | None = None
        """The file that was checked past the cache last."""

    def check(self, job: Job) -> Checked:
        """Check a file. Never raises; what goes wrong is told in `troubles`."""
        try:
            with collecting_rarely():
                checked = self._check(job)
        except Exception as error:
            message = f"internal error {type(error).__name__}: {error}; --verbose shows where"
            trouble = Trouble(job.path, message, lost=True)
            checked = Checked(job.path, lost(job.path, error), (trouble,))
        return _of_caller(checked, job.shows) if job.shows else self._with_unread(checked)

    def _check(self, job: Job) -> Checked:
        try:
            data = read_bytes(job.path) if job.data is None else job.data
            if not job.named and not _may_use_torch(data):
                return Checked(job.path)
            text = decode(data)
            if GATE not in text.text:
                if "\0" in text.text:
                    raise Unreadable("binary, or text in an encoding that Python does not read")
                return Checked(job.path)
            source = program(job.path, text)
            if source is None:
                return Checked(job.path)
        except Unreadable as error:
            dangling = isinstance(error, Missing) and os.path.islink(job.path)
            why = "a link that leads nowhere" if dangling else str(error)
            return Checked(job.path, troubles=(Trouble(job.path, why, unread=Unread.FILE, named=job.named),))
        key = self._key(job, data) if self._cache else ""
        checked = self._cached(job, key) or self._fresh(job, source, key)
        return self._add_edits(checked, job, source) if self._with_edits else checked

    def source_checked(self, job: Job, source: Source) -> Report:
        """Check another text for the same file, past the cache and with what is known of the text before it."""
        if self._again is None or self._again[0] != job:
            self._again = job, Rechecking(job.settings, self.workspace(job.settings))
        return self._again[1](source)

    def _fresh(self, job: Job, source: Source, key: str) -> Checked:
        workspace = _Recording(self.workspace(job.settings), self._digest)
        report = check(source, job.settings, workspace)
        troubles = [
            Trouble(job.path, f"cannot be parsed: {each.message} ({_GRAMMAR})", each.line)
            for each in source.errors
        ]
        if report.lost:
            message = f"{report.faults[-1].message}; --verbose shows where"
            troubles.append(Trouble(job.path, message, lost=True))
        checked = Checked(job.path, report, tuple(troubles), uses_torch=True)
        if self._cache and not report.crash:
            told = tuple((each.message, each.line) for each in troubles)
            kept = plain.Kept(report, told, workspace.resolved, workspace.read)
            self._cache.put(key, plain.from_kept(kept))
        return checked

    def workspace(self, settings: Settings) -> ReadingWorkspace:
        """Other files, as the files under these settings see them."""
        key = (settings.root, settings.src, settings.within, settings.trusted)
        if key not in self._workspaces:
            bounds = Bounds((*settings.within, *settings.trusted) if settings.within else ())
            roots, _ = source_roots(settings, settings.root or os.getcwd(), bounds.holds_folder)
            self._workspaces[key] = ReadingWorkspace(
                lambda path: os.path.isfile(path) and bounds.holds(path),
                self._text,
                roots,
                absent=lambda path: self._missed(path, bounds),
            )
        return self._workspaces[key]

    def _text(self, path: str) -> str | None:
        try:
            return _short_enough(self._read(path)).text
        except Unreadable as error:
            self._unread[path] = str(error)
            return None

    def _read(self, path: str) -> Decoded:
        """A file that an import led to. Raises Unreadable."""
        return read_file(path)

    def _missed(self, path: str, bounds: Bounds) -> None:
        """Something may stand where an import leads, and still be no file that is read."""
        if not os.path.lexists(path) or os.path.isdir(path):
            return
        if not bounds.holds(path) and os.path.isfile(path):
            self._unread[path] = "it lies out of the project"
            return
        try:
            read_bytes(path)
        except Unreadable as error:
            self._unread[path] = "a link that leads nowhere" if isinstance(error, Missing) else str(error)

    def _with_unread(self, checked: Checked) -> Checked:
        """The same, with the files that imports led to for the first time and that cannot be read."""
        new = sorted(self._unread.keys() - self._told)
        self._told.update(new)
        imported = tuple(
            Trouble(path, f"{self._unread[path]} (imported)", unread=Unread.FILE, named=False) for path in new
        )
        return replace(checked, imported=imported) if imported else checked

    def _add_edits(self, checked: Checked, job: Job, own: Source) -> Checked:
        findings = (*checked.report.findings, *checked.report.elsewhere)
        if not any(finding.fixes for finding in findings):
            return checked
        workspace, report, writer = self.workspace(job.settings), checked.report, Writer()
        wide = replace(job, settings=widened(job.settings, catalogue()))
        whole = report if wide == job else self.source_checked(wide, own)
        trials: dict[str, Trials | None] = {
            own.path: Trials(own, whole, lambda source: self.source_checked(wide, source), writer)
        }

        def among(path: str) -> Trials | None:
            if path not in trials:
                source = workspace.source(path)
                trials[path] = Trials(source, whole, with_other, writer) if source else None
            return trials[path]

        def with_other(source: Source) -> Report:
            return check(Source(own.path, own.text), wide.settings, Overlaid(workspace, source))

        edits: dict[Finding, tuple[Edits | None, ...]] = {}

        def offered(finding: Finding) -> Finding:
            there = among(finding.path)
            made = [(plan, there.edits(finding, plan) if there else None) for plan in finding.fixes]
            made = [each for each in made if each[1] is not None]
            kept = replace(finding, fixes=tuple(plan for plan, _ in made))
            edits[kept] = tuple(own for _, own in made)
            return kept

        shown = replace(
            report,
            findings=tuple(map(offered, report.findings)),
            elsewhere=tuple(map(offered, report.elsewhere)),
        )
        return replace(checked, report=shown.with_limits(writer.limits), edits=tuple(edits.items()))

    # The cache

    def _key(self, job: Job, data: bytes) -> str:
        values = [
            (name, getattr(job.settings, name))
            for name, option in options().items()
            if not option.editor_only
        ]
        folders = (job.settings.root, *job.settings.within, "", *job.settings.trusted)
        return digest(
            os.fsencode(job.path),
            *map(os.fsencode, folders),
            repr(values).encode(),
            data,
        )

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            try:
                self._digests[path] = digest(_short_enough(read_file(path)).data)
            except Unreadable as error:
                self._refused[path] = str(error)
                self._digests[path] = ""
        return self._digests[path]

    def _cached(self, job: Job, key: str) -> Checked | None:
        entry = self._cache.get(key) if self._cache else None
        if entry is None:
            return None
        try:
            kept = plain.to_kept(entry)
        except ValueError:
            return None
        workspace = self.workspace(job.settings)
        if any(workspace.resolve(*asked) != found for asked, found in kept.resolved.items()):
            return None
        if any(self._digest(path) != mark for path, mark in kept.read.items()):
            return None
        self._unread.update({path: self._refused[path] for path in kept.read if path in self._refused})
        troubles = tuple(Trouble(job.path, message, line) for message, line in kept.troubles)
        return Checked(job.path, kept.report, troubles, uses_torch=True)


def program(path: str, text: Decoded) -> Source | None:
    """The program in a file: its text, or the cells of a notebook; None for a notebook in another language.

    Raises Unreadable.
    """
    if not path.endswith(SUFFIX):
        return Source(path, _short_enough(text).text)
    try:
        notebook = read_notebook(text.text)
    except ValueError as error:
        raise Unreadable(str(error)) from None
    joined = notebook.program
    if len(joined.text) > LONGEST:
        raise Unreadable(TOO_LONG)
    if not notebook.python or GATE not in joined.text:
        return None
    return Source(path, joined.text, breaks=joined.starts[1:])


def _short_enough(text: Decoded) -> Decoded:
    """The same. Raises Unreadable for a text that is not parsed."""
    if len(text.text) > LONGEST:
        raise Unreadable(TOO_LONG)
    return text


def _may_use_torch(data: bytes) -> bool:
    """False where the bytes of a file show at once that its text does not name torch."""
    return GATE.encode() in data or not data.isascii() or b"\0" in data or b"coding" in data


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage as seldom as checking needs it; around many files, as changing back collects."""
    usual = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


_GRAMMAR = f"as Python {sys.version_info[0]}.{sys.version_info[1]} reads it"


class _Recording:
    """A workspace that notes what it was asked, so that a kept result can be asked the same again."""

    def __init__(self, inner: Workspace, digest_of: Any) -> None:
        self._inner = inner
        self._digest_of = digest_of
        self.resolved: dict[tuple[str, int, str], str | None] = {}
        self.read: dict[str, str] = {}

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        found = self._inner.resolve(module, level, from_path)
        self.resolved[(module, level, from_path)] = found
        return found

    def source(self, path: str) -> Source | None:
        self.read[path] = self._digest_of(path)
        return self._inner.source(path)
