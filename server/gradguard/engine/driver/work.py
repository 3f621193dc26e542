"""What the entries of one file share: the file's definitions, the modules and objects they lead to, and faults met there."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.values import Frame, Globals, LazyV, Namespace
from gradguard.engine.driver import covered
from gradguard.engine.driver.objects import Objects
from gradguard.engine.driver.record import Record
from gradguard.engine.driver.snapshot import Snapshot
from gradguard.engine.state.run import Files, Run
from gradguard.ops.table import Table
from gradguard.source.text import Source

SHARED_NUMBERS = 1_000_000
"""Numbers of values made by shared definitions, out of the way of those that an entry makes."""


@dataclass(slots=True)
class Definitions:
    """What a file's top level defines: made once, and put back for each entry that is a function."""

    frame: Frame
    namespaces: dict[str, Namespace]
    """Imported files that it needed."""
    entered: frozenset[ast.AST]
    devices: frozenset[str]
    snapshot: Snapshot
    used: bool = False
    functions_changed: bool = False
    """An entry changed the mode of a function after its definition."""

    def restore(self) -> int:
        """Put everything back as the top level left it. Returns how much it was."""
        if not self.used:
            return 0
        undone = self.snapshot.restore(functions=self.functions_changed)
        self.used = self.functions_changed = False
        return undone

    def begin(self, library: Run) -> None:
        """An entry starts."""
        self.used = True
        for variables in (self.variables, *(one.variables for one in library.namespaces.values())):
            variables.begin()

    @property
    def variables(self) -> Globals:
        """The file's globals."""
        assert isinstance(self.frame.variables, Globals)
        return self.frame.variables


@dataclass(slots=True)
class Work:
    """What the entries of one file share."""

    file: Source
    table: Table
    files: Files
    sources: dict[str, Source]
    noting: bool = False
    every_write: bool = False
    definitions: Definitions | None = None
    library: Run | None = None
    """The run that made them, and that loads imported modules for all entries that are functions."""
    defines: bool = False
    """Whether the file does the same as a script as when it is imported."""
    script: Run | None = None
    """A run of it as a script that left nothing behind but what it defines."""
    fresh: list[Namespace | LazyV] = field(default_factory=list)
    """Modules that were loaded, and definitions of them that were made, and that are not in the snapshot yet."""
    objects: dict[str, Objects] = field(default_factory=dict)
    """By class."""
    _numbered: int = 1
    ways: covered.Ways = field(default_factory=covered.Ways)
    faults: list[Fault] = field(default_factory=list)
    """Those that are of no one entry."""
    forgot: bool = False

    def resolve(self, module: str, level: int, from_path: str) -> str | None:
        """See `Files.resolve`."""
        return self.files.resolve(module, level, from_path)

    def source(self, path: str) -> Source | None:
        """See `Files.source`; what was read once is read no more."""
        known = self.sources.get(path)
        if known is None:
            known = self.files.source(path)
            if known is not None:
                self.sources[path] = known
        return known

    def numbers(self) -> int:
        """The start of a fresh range of numbers for the values of the next object that several paths share."""
        self._numbered += 1
        return SHARED_NUMBERS * self._numbered

    def loaded(self, one: Namespace | LazyV, outermost: bool) -> None:
        """The library loaded a module, or made definitions. What is made inside another may be changed until that is done."""
        self.fresh.append(one)
        if outermost and self.definitions is not None:
            self.definitions.snapshot.add(self.fresh)
            self.fresh.clear()

    def forget(self) -> None:
        """Use nothing any more that entries share: a fault may have struck while that was made, or put back."""
        if self.library is not None:
            self.faults += self.library.faults
        self.definitions = self.library = self.script = None
        self.objects.clear()
        self.fresh.clear()
        self.forgot = True
        gc.collect()

    def met(self, records: Iterable[Record]) -> tuple[Fault, ...]:
        """All faults of an analysis, each once."""
        shared = self.library.faults if self.library is not None else ()
        own = (one for record in records for one in record.faults)
        return tuple(dict.fromkeys((*self.faults, *shared, *own)))
