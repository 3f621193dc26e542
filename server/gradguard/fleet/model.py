"""What the parts of a scan hand to each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gradguard.check.parsing import Parsed
from gradguard.cli.configuration import command_line_layer


class Kind(str, Enum):
    """What a source is."""

    FOLDER = "folder"
    ARCHIVE = "archive"
    GIT = "git"


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that was asked for. `location` is an absolute path or the address of a repository."""

    kind: Kind
    location: str
    name: str
    revision: str = ""

    def plain(self) -> dict[str, str]:
        """As it travels between processes."""
        return {
            "kind": self.kind.value,
            "location": self.location,
            "name": self.name,
            "revision": self.revision,
        }

    @classmethod
    def of(cls, plain: dict[str, str]) -> Source:
        """What `plain` gave."""
        return cls(Kind(plain["kind"]), plain["location"], plain["name"], plain["revision"])


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that was not read, and why. `path` is that in the source, empty for the source itself."""

    path: str
    why: str


class Unopened(Exception):
    """Nothing of a source can be read; the message says why."""


MOST_TOLD = 1000
"""Of one source that are told one by one."""


class Missed:
    """What was not read of a source: the first ones, and how many more there were."""

    def __init__(self) -> None:
        self._first: list[Unread] = []
        self._more = 0

    def add(self, path: str, why: str) -> None:
        """One more."""
        if len(self._first) < MOST_TOLD:
            self._first.append(Unread(path, why))
        else:
            self._more += 1

    def told(self) -> list[Unread]:
        """All of them, those after the first in one."""
        more = [Unread("", f"{self._more:,} more files that were not read")] if self._more else []
        return [*self._first, *more]


@dataclass(slots=True)
class Tree:
    """The files of a source that matter, in memory, by their paths from its top with slashes.

    Nothing of a source is ever written to a disk: there is no folder that one of its names could lead out of.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    missed: Missed = field(default_factory=Missed)
    revision: str = ""
    base: str = ""
    """The folder that holds all of an sdist, which stands for the source itself."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says for all packages of a scan: a result depends on it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    torch: str = ""
    all: bool = False
    context: int = 0
    """Lines before and after each finding that are kept."""

    def plain(self) -> dict[str, Any]:
        """As it travels between processes."""
        return {
            "select": list(self.select),
            "ignore": list(self.ignore),
            "torch": self.torch,
            "all": self.all,
            "context": self.context,
        }

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Options:
        """What `plain` gave."""
        return cls(
            tuple(plain["select"]), tuple(plain["ignore"]), plain["torch"], plain["all"], plain["context"]
        )

    def parsed(self) -> Parsed:
        """The layer of settings that goes over those of a package."""
        return command_line_layer(
            select=list(self.select) or None,
            ignore=list(self.ignore) or None,
            torch=self.torch or None,
            everything=self.all,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a source and a package may take."""

    seconds: float = 3600.0
    """For opening a source, and for the files of a package together."""
    file_seconds: float = 120.0
    """Of processor time, for one file."""
    memory: int = 4_000_000_000
    """Bytes, for the process that reads."""


def plain_unread(unread: Iterable[Unread]) -> list[list[str]]:
    """As it travels."""
    return [[each.path, each.why] for each in unread]
