"""Results of earlier runs, by content: `.gradguard_cache` in the root of the project.

    .gradguard_cache/<fingerprint of gradguard>/<2 digits>/<key>.json

The key is made of a file's bytes, its path in the project and its settings; an entry also lists what was
looked up in other files, and counts only while each of those look-ups still gives the same. Entries are
written to a temporary file and renamed, so that runs at the same time never see half of one; two that
write the same entry write the same bytes. What was not used for a month is removed, at most once a day,
and folders of other versions after a fortnight. A cache that cannot be written or read is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradguard

NAME = ".gradguard_cache"
DAY = 24 * 60 * 60
KEEP_ENTRIES = 30 * DAY
KEEP_VERSIONS = 14 * DAY


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of entries for this very version of gradguard."""

    top: Path
    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """The entry of a key, None when there is none or it cannot be read."""
        path = self._path(key)
        try:
            data = json.loads(path.read_bytes())
            if time.time() - path.stat().st_mtime > DAY:
                os.utime(path)
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    def put(self, key: str, entry: dict[str, Any]) -> None:
        """Keep an entry, where that is possible."""
        path = self._path(key)
        data = json.dumps(entry, separators=(",", ":")).encode()
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def first_time(self, what: str) -> bool:
        """Whether this is asked for the first time in this project."""
        mark = self.top / what
        try:
            mark.touch(exist_ok=False)
        except OSError:
            return False
        return True

    def clean(self, now: float | None = None) -> None:
        """Remove what nobody used for long; does nothing when that was done within the last day."""
        now = time.time() if now is None else now
        mark = self.top / "cleaned"
        with contextlib.suppress(OSError):
            if mark.exists() and now - mark.stat().st_mtime < DAY:
                os.utime(self.folder, (now, now))
                return
            mark.touch()
            os.utime(mark, (now, now))
            os.utime(self.folder, (now, now))
        for folder in _folders(self.top):
            if folder != self.folder:
                if now - _mtime(folder, now) > KEEP_VERSIONS:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            for part in _folders(folder):
                for entry in part.iterdir():
                    if now - _mtime(entry, now) > KEEP_ENTRIES:
                        entry.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def open_cache(root: Path) -> Cache | None:
    """The cache of the project at `root`, made when missing; None when there cannot be one."""
    top = root / NAME
    folder = top / fingerprint()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            (".gitignore", "*\n"),
            ("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ):
            if not (top / name).exists():
                (top / name).write_text(text, "utf-8")
    except OSError:
        return None
    return Cache(top, folder) if os.access(folder, os.W_OK) else None


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


def _folders(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _mtime(path: Path, default: float) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return default
