"""Results of earlier runs, by content, in the cache folder of the user: never in a project.

    <top>/<name of the project>-<digest of where it lies>/<fingerprint of gradguard>/<2 digits>/<38 digits>.json

The top is the folder that the system has for such things, or the one named by `--cache-dir` or `GRADGUARD_CACHE_DIR`.

The key of an entry is made of a file's bytes, its path and its settings; an entry also lists what was looked up in
other files, and counts only while each of those look-ups still gives the same. Entries take their place when they
are whole, so that runs at the same time never see half of one; two that write the same entry write the same bytes.

A repository can neither forge an entry nor lead anything astray: links on the way to the top are the user's, from
there on none is followed, and folders in which others may write are not used. Hence nothing is signed, and an entry is
checked only for being one.

Once a day and project `cleaning` removes what is old: entries not used for a month, other versions after a fortnight,
other projects after a quarter of a year.

A cache that cannot be written or read is no error.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import gradguard
from gradguard.cli import cleaning
from gradguard.cli.stderr import tell
from gradguard.disk.folder import Folder, Unsafe
from gradguard.disk.links import is_project, until_project
from gradguard.disk.reading import Unreadable

VARIABLE = "GRADGUARD_CACHE_DIR"
ENTRY_BYTES = 4_000_000
"""Of an entry; those of large libraries have a few thousand."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cache lies: a folder with links on the way to it, and names from there on, none of them a link."""

    base: str
    steps: tuple[str, ...]

    @classmethod
    def of(cls, named: str | None) -> Place:
        """The place that the user named, else that of the system. Raises OSError where there is none."""
        if named:
            return cls(*until_project(os.path.expanduser(named)))
        import platformdirs

        path = platformdirs.user_cache_dir("gradguard", appauthor=False)
        if not os.path.isabs(path):
            raise FileNotFoundError(errno.ENOENT, "no home folder, so no place for a cache", path)
        return cls(os.path.dirname(path), (os.path.basename(path),))

    def open(self) -> Folder:
        """The top, made where it is missing. Raises OSError, Unsafe where others may write there."""
        with contextlib.suppress(FileExistsError):
            os.makedirs(self.base, 0o700)
        with Folder.open(self.base) as base:
            folder = base.below(self.steps, make=True)
            folder.require_private()
            return folder


class Cache:
    """Entries of one project, for this very version of gradguard. It may be sent to other processes."""

    def __init__(self, place: Place, project: str, version: str) -> None:
        self._place = place
        self._project = project
        self._version = version
        self._opened: tuple[int, Folder] | None = None

    def __reduce__(self) -> tuple[type[Cache], tuple[Place, str, str]]:
        return Cache, (self._place, self._project, self._version)

    def get(self, key: str) -> object:
        """The entry of a key, which may be any JSON; None when there is none or it cannot be read."""
        try:
            with _private(self._folder(), key[:2], make=False) as part:
                name = _name(key)
                entry: object = json.loads(part.read(name, ENTRY_BYTES))
                cleaning.used(part, name, time.time())
        except (OSError, Unreadable, ValueError, RecursionError):
            return None
        return entry

    def put(self, key: str, entry: object) -> None:
        """Keep an entry, where that is possible."""
        data = json.dumps(entry, separators=(",", ":")).encode()
        if len(data) > ENTRY_BYTES:
            return
        with contextlib.suppress(OSError), _private(self._folder(), key[:2]) as part:
            part.write(_name(key), data, mode=0o600)

    def first_time(self, what: str) -> bool:
        """Whether this is asked for the first time in this project."""
        try:
            with self._place.open() as top, top.below([self._project]) as project:
                return project.create(what)
        except OSError:
            return False

    def clean(self, now: float | None = None) -> None:
        """Remove what nobody used for long; does nothing when that was done within the last day."""
        now = time.time() if now is None else now
        with (
            contextlib.suppress(OSError),
            self._place.open() as top,
            top.below([self._project]) as project,
        ):
            done = project.look(cleaning.CLEANED)
            if done is not None and now - done.st_mtime < cleaning.DAY:
                return
            project.write(cleaning.CLEANED, b"", mode=0o600)
            project.touch(cleaning.CLEANED, now)
            cleaning.clean(top, self._project, self._version, now)

    def _folder(self) -> Folder:
        """The folder of this version. Another process than the one that opened it has to do so itself, since not
        every one leaves handles to its children. Raises OSError."""
        if self._opened is None or self._opened[0] != os.getpid():
            with self._place.open() as top, _private(top, self._project) as project:
                self._opened = os.getpid(), _private(project, self._version)
        return self._opened[1]


def open_cache(root: Path, named: str | None = None) -> Cache:
    """The cache of the project at `root`, made when missing, in the place that was named or else the usual one.

    Raises OSError; Unsafe for a place that is not to be used.
    """
    cache = Cache(Place.of(named), project_name(root), fingerprint())
    now = time.time()
    with cache._place.open() as top:
        with _private(top, cache._project) as project:
            if project.look(cleaning.IGNORE) is None:
                project.write(cleaning.IGNORE, b"*\n", mode=0o600)
            cleaning.mark(project, now)
        with cache._folder().below([]) as version:
            cleaning.mark(version, now)
    return cache


def usual_cache(named: str | None, verbose: bool = False) -> Cache | None:
    """The cache of the project that the working folder is in, None where there can be none; that is told where
    the user asked for a place, or where the usual one is not to be used."""
    named = named or os.environ.get(VARIABLE)
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if is_project(folder)), here)
    try:
        return open_cache(root, named)
    except OSError as error:
        if named or verbose or isinstance(error, Unsafe):
            tell(f"warning: no cache: {error.filename}: {error.strerror}")
        return None


def _private(parent: Folder, name: str, *, make: bool = True) -> Folder:
    """A folder of the cache, made where it is missing. Raises OSError, Unsafe where others may write there."""
    folder = parent.below([name], make=make)
    try:
        folder.require_private()
    except OSError:
        folder.close()
        raise
    return folder


def _name(key: str) -> str:
    return f"{key[2:]}.json"


def project_name(root: Path) -> str:
    """The name of a project's folder: one that people know again, and a digest of where it really lies."""
    real = os.path.realpath(root)
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "_", os.path.basename(real)).lstrip(".-")[:40]
    return f"{readable or 'project'}-{hashlib.blake2b(os.fsencode(real), digest_size=10).hexdigest()}"


def fingerprint() -> str:
    """A mark of this version of gradguard, down to an edited file, and of the grammar it runs on."""
    package = Path(gradguard.__file__).parent
    hashed = hashlib.blake2b(digest_size=10)
    hashed.update(f"{gradguard.__version__} {sys.version_info[:3]}".encode())
    stack = [package]
    while stack:
        for entry in sorted(os.scandir(stack.pop()), key=lambda each: each.path):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    stack.append(Path(entry.path))
            else:
                stat = entry.stat()
                name = os.path.relpath(entry.path, package)
                hashed.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return hashed.hexdigest()


def digest(*parts: bytes) -> str:
    """The key of some content."""
    hashed = hashlib.blake2b(digest_size=20)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()
