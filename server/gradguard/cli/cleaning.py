"""What of a cache is old is removed, and nothing else; see `cache` for what lies where.

A folder is cleared only if it has the name and the mark that a cache made it with, in it only what has the name of an
entry, and itself only when nothing is left in it. What the mark proves is that a cache made the folder, as nobody but
the user may write there; whoever forges one all the same puts in danger what lies beside it under the name of an
entry. Links are neither followed nor removed.
"""

from __future__ import annotations

import contextlib
import random
import re
import stat
from collections.abc import Iterator

from gradguard.disk.folder import DRAFT, Folder
from gradguard.disk.reading import Unreadable

DAY = 24 * 60 * 60
KEEP_ENTRIES = 30 * DAY
KEEP_VERSIONS = 14 * DAY
KEEP_PROJECTS = 90 * DAY
KEEP_DRAFTS = DAY
LOOKS = 20_000
"""How many entries one clean-up looks at. The next begins elsewhere."""

TAG = "CACHEDIR.TAG"
TAG_TEXT = b"""\
Signature: 8a477f597d28d172789f06886806bc55
# Results of earlier runs of gradguard, which removes what is old. This folder may be removed at any time.
"""
"""The mark of a folder of a cache, which tools that make backups know as well."""
IGNORE = ".gitignore"
CLEANED = "cleaned"
HINTED = "hinted"
OWN = (IGNORE, CLEANED, HINTED, TAG)
"""Files of the folder of a project. The mark goes last."""

PROJECT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*-[0-9a-f]{20}")
VERSION = re.compile(r"[0-9a-f]{20}")
PART = re.compile(r"[0-9a-f]{2}")
FILE = re.compile(rf"[0-9a-f]{{38}}\.json|{DRAFT.pattern}")


def clean(top: Folder, project: str, version: str, now: float) -> None:
    """Remove what is old from a cache whose folders of this project and version are in use. Never raises."""
    cleaning = _Cleaning(now)
    with contextlib.suppress(OSError), top.below([project]) as own:
        cleaning.files(own)
        with _made_by_a_cache(own, version) as folder:
            if folder:
                cleaning.files(folder)
                cleaning.entries(folder, KEEP_ENTRIES)
        for name in cleaning.names(own, VERSION):
            if name != version:
                cleaning.version(own, name)
    with contextlib.suppress(OSError):
        for name in cleaning.names(top, PROJECT):
            if name != project:
                cleaning.project(top, name)


def mark(folder: Folder, now: float) -> None:
    """Mark a folder as made by a cache and used at this time. Raises OSError."""
    if is_marked(folder):
        used(folder, TAG, now)
    else:
        folder.write(TAG, TAG_TEXT, mode=0o600)


def is_marked(folder: Folder) -> bool:
    """Whether a cache made this folder."""
    try:
        return folder.read(TAG, len(TAG_TEXT)) == TAG_TEXT
    except Unreadable:
        return False


def used(folder: Folder, name: str, now: float) -> None:
    """Note that an entry was used at this time, a day being exact enough."""
    with contextlib.suppress(OSError):
        found = folder.look(name)
        if found is not None and now - found.st_mtime > DAY:
            folder.touch(name, now)


@contextlib.contextmanager
def _made_by_a_cache(parent: Folder, name: str) -> Iterator[Folder | None]:
    """The folder of this name, None unless a cache made it and nobody else may write there. Raises OSError."""
    with parent.below([name]) as folder:
        folder.require_private()
        yield folder if is_marked(folder) else None


class _Cleaning:
    """One clean-up, with what it may still look at."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._left = LOOKS

    def names(self, folder: Folder, form: re.Pattern[str]) -> list[str]:
        """Names of this form, in another order each time. Raises OSError."""
        found = []
        for name in folder.names():
            if self._left <= 0:
                break
            self._left -= 1
            if form.fullmatch(name):
                found.append(name)
        random.shuffle(found)
        return found

    def project(self, top: Folder, name: str) -> None:
        """Remove a project that was not used for long."""
        with contextlib.suppress(OSError):
            with _made_by_a_cache(top, name) as folder:
                if not folder or not self._is_old(folder, TAG, KEEP_PROJECTS):
                    return
                self.files(folder)
                for version in self.names(folder, VERSION):
                    self.version(folder, version)
                if any(each not in OWN for each in folder.names()):
                    return
                for each in OWN:
                    self._remove(folder, each, 0)
            top.remove_empty(name)

    def version(self, project: Folder, name: str) -> None:
        """Remove a version that was not used for long."""
        with contextlib.suppress(OSError):
            with _made_by_a_cache(project, name) as folder:
                if not folder or not self._is_old(folder, TAG, KEEP_VERSIONS):
                    return
                self.files(folder)
                self.entries(folder, 0)
                if any(each != TAG for each in folder.names()):
                    return
                self._remove(folder, TAG, 0)
            project.remove_empty(name)

    def entries(self, version: Folder, age: float) -> None:
        """Remove entries over an age; without an age also the folders that they were in. Raises OSError."""
        for part in self.names(version, PART):
            with contextlib.suppress(OSError):
                with version.below([part]) as folder:
                    self.files(folder, age)
                if age == 0:
                    version.remove_empty(part)

    def files(self, folder: Folder, age: float = KEEP_ENTRIES) -> None:
        """Remove entries over an age and what a kill left of writing them. Raises OSError."""
        for name in self.names(folder, FILE):
            self._remove(folder, name, KEEP_DRAFTS if DRAFT.fullmatch(name) else age)

    def _remove(self, folder: Folder, name: str, age: float) -> None:
        if self._is_old(folder, name, age):
            folder.remove(name)

    def _is_old(self, folder: Folder, name: str, age: float) -> bool:
        """Whether a file is over an age; nothing but a file with this one name is. Raises OSError."""
        if self._left <= 0:
            return False
        self._left -= 1
        found = folder.look(name)
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return False
        return self._now - found.st_mtime > age
