"""The programs that are open, found by whatever an edit asks for: none of it looks at all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gradguard.findings import Finding
from gradguard.ide.analysis import Analysis
from gradguard.lsp.loading import InForce
from gradguard.lsp.snapshot import Snapshot
from gradguard.lsp.worker import Urgency


@dataclass(slots=True)
class Program:
    """One program and its latest answer."""

    key: str
    snapshot: Snapshot
    cells: list[str] | None = None
    """URIs of a notebook's cells in order, empty for markup cells (the client counts them); None for a document."""
    answered: int = -1
    """Stamp of the version that `analysis` is for."""
    analysis: Analysis | None = None
    """None where there was nothing to analyse."""
    of: Snapshot | None = None
    """The version that `analysis` is for, with the places of what was read for it."""
    force: InForce | None = None
    seen: dict[str, str | None] = field(default_factory=dict)
    """Texts of other files that the answer rests on."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    saved: bool = True
    """Opened or saved since the last edit."""
    shown: set[str] = field(default_factory=set)
    """URIs of documents for which findings were shown."""
    refreshed: bool = False
    """Analysed anew for a reason that the client does not see: other files, settings."""
    urgency: Urgency = Urgency.BACKGROUND
    """Of the job that waits for its settings."""
    stale: bool = False
    """To be analysed anew for such a reason, which has not begun."""

    tried: dict[Finding, Finding] = field(default_factory=dict)
    """Findings of this answer whose fixes were asked for, with those of them that do what they are offered for."""
    refused: bool = False
    """Too long to be analysed."""
    resting: bool = False
    """Its answer is without trees and tape."""

    @property
    def fresh(self) -> bool:
        """Whether the answer is for the current version, and for what it rests on."""
        return not self.stale and self.answered == self.snapshot.stamp

    @property
    def targets(self) -> set[str]:
        """Paths of other files that the answer speaks of."""
        return {each.path for each in self.analysis.elsewhere} if self.analysis else set()


class Programs:
    """Programs by key, and by the document, the path, the imported file and the blamed file they have to do with."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}
        self._owner: dict[str, str] = {}
        self._uris: dict[str, set[str]] = {}
        self._at = _Index()
        self._readers = _Index()
        self._speakers = _Index()

    def __iter__(self) -> Iterator[Program]:
        return iter(list(self._programs.values()))

    def __len__(self) -> int:
        return len(self._programs)

    def get(self, key: str) -> Program | None:
        """The program of a key."""
        return self._programs.get(key)

    def of(self, uri: str) -> Program | None:
        """The program that a document belongs to."""
        return self._programs.get(self._owner.get(uri, ""))

    def at(self, path: str) -> list[Program]:
        """Programs whose file has this path."""
        return self._at.get(path)

    def readers(self, path: str) -> list[Program]:
        """Programs whose answer rests on the file at this path."""
        return self._readers.get(path)

    def speakers(self, path: str) -> list[Program]:
        """Programs whose answer has findings for the file at this path, which is another's."""
        return self._speakers.get(path)

    def add(self, program: Program, uris: Sequence[str]) -> None:
        """A program is open, with these documents."""
        before = self._programs.get(program.key)
        if before is not None:
            self.remove(before)
        self._programs[program.key] = program
        self._at.add(program.snapshot.path, program)
        for uri in uris:
            self.own(program, uri)

    def own(self, program: Program, uri: str) -> None:
        """A document belongs to a program from now on."""
        self.disown(uri)
        self._owner[uri] = program.key
        self._uris.setdefault(program.key, set()).add(uri)

    def disown(self, uri: str) -> None:
        """A document belongs to no program."""
        owner = self._owner.pop(uri, None)
        if owner is not None:
            self._uris[owner].discard(uri)

    def remove(self, program: Program) -> None:
        """A program is no longer open."""
        del self._programs[program.key]
        for uri in self._uris.pop(program.key, ()):
            del self._owner[uri]
        self._at.discard(program.snapshot.path, program)
        for path in program.seen:
            self._readers.discard(path, program)
        for path in program.targets:
            self._speakers.discard(path, program)

    def answer(
        self, program: Program, snapshot: Snapshot, found: Analysis | None, seen: dict[str, str | None]
    ) -> set[str]:
        """Give a program its answer; paths of other files of which the answer before or this one speaks."""
        before, spoken = program.seen, program.targets
        program.analysis, program.seen, program.tried = found, seen, {}
        program.of = replace(snapshot, places=found.source.places) if found is not None else snapshot
        program.answered = snapshot.stamp
        for path in before.keys() - seen.keys():
            self._readers.discard(path, program)
        for path in seen.keys() - before.keys():
            self._readers.add(path, program)
        speaks = program.targets
        for path in spoken - speaks:
            self._speakers.discard(path, program)
        for path in speaks - spoken:
            self._speakers.add(path, program)
        return spoken | speaks


class _Index:
    """Programs by something that several of them share."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Program]] = {}

    def get(self, name: str) -> list[Program]:
        return list(self._found.get(name, {}).values())

    def add(self, name: str, program: Program) -> None:
        self._found.setdefault(name, {})[program.key] = program

    def discard(self, name: str, program: Program) -> None:
        found = self._found.get(name)
        if found is not None:
            found.pop(program.key, None)
            if not found:
                del self._found[name]
