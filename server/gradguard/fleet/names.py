"""Which names of a source are read, and the bounds of what one source may hold."""

from __future__ import annotations

import os
import re

from gradguard.check.pyproject import NAME as PYPROJECT
from gradguard.disk.reading import SETTINGS_BYTES, SOURCE_BYTES, too_large
from gradguard.fleet.model import Missed, Tree, Unopened

ROOTS = (PYPROJECT, "setup.py", "setup.cfg")
"""A folder that holds one of these is the root of a package."""
MEMBERS = 2_000_000
"""Entries of an archive or a commit."""
TEXT_BYTES = 1_000_000_000
"""Of a source, all files together that are read."""
STREAM_BYTES = 20_000_000_000
"""Of an archive once it is unpacked, what is skipped included: a bomb holds more."""
LONGEST = 4096
"""Bytes of a path."""

LINK = "a link, which is not followed"
LEADS_OUT = "its name leads out of the source"

_DRIVE = re.compile(r"[A-Za-z]:")


def wanted(name: str) -> bool:
    """Whether the file with this path is read: programs and settings, and what marks the root of a package."""
    return name.endswith(".py") or name.rpartition("/")[2] in ROOTS


def safe(name: str) -> str:
    """The path in one form. Raises ValueError for one that would lead elsewhere, or is no path of a file."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or "\\" in name or _DRIVE.match(name):
        raise ValueError(LEADS_OUT)
    if not parts or len(os.fsencode(name)) > LONGEST:
        raise ValueError("no name of a file")
    return "/".join(parts)


def most_of(name: str) -> int:
    """Bytes of a file with this path that are read."""
    return SETTINGS_BYTES if name.rpartition("/")[2] in ROOTS else SOURCE_BYTES


class Gathering:
    """Puts files into a tree and keeps count of what they hold together."""

    def __init__(self) -> None:
        self.tree = Tree()
        self._members = 0
        self._bytes = 0

    @property
    def missed(self) -> Missed:
        """What is not read."""
        return self.tree.missed

    def member(self, name: str) -> str | None:
        """Count an entry; the path under which it is to be read, None where it is not. Raises Unopened."""
        self._members += 1
        if self._members > MEMBERS:
            raise Unopened(f"it has more than {MEMBERS:,} entries")
        if not wanted(name):
            return None
        try:
            return safe(name)
        except ValueError as error:
            self.missed.add(name, str(error))
            return None

    def fits(self, name: str, size: int) -> bool:
        """Whether a file of this size is read; told where it is not. Raises Unopened."""
        if size > most_of(name):
            self.missed.add(name, too_large(most_of(name)))
            return False
        if self._bytes + size > TEXT_BYTES:
            raise Unopened(f"its programs are larger than {TEXT_BYTES // 1_000_000_000} GB together")
        return True

    def put(self, name: str, data: bytes) -> None:
        """A file that was read. Raises Unopened."""
        if not self.fits(name, len(data)):
            return
        if name in self.tree.files:
            self.missed.add(name, "a second file of the same name")
            return
        self._bytes += len(data)
        self.tree.files[name] = data
