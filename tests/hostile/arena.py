"""A temporary home with a project in it, and beside it what nobody may touch.

Commands run here with limits of time, CPU and memory, with every place that programs write to (home, cache, temporary
files) inside of the arena, and with a mark in their environment by which whatever they leave running is found.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradguard

SERVER = Path(gradguard.__file__).parents[1]
MARK = "GRADGUARD_ARENA"
CPU_SECONDS = 60
MEMORY = 3_000_000_000
"""Address space of one process: several times what a check of an ordinary repository takes."""
PATIENCE = 60.0
LONGEST_PATH = 3_500
"""Bytes of the paths of folders that are looked into; systems take little more."""
OLD = 60 * 24 * 60 * 60


@dataclass(frozen=True)
class Done:
    """How a command ended; what it wrote, as bytes."""

    words: tuple[str, ...]
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def errors(self) -> str:
        return self.err.decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Arena:
    """Folders of one trial."""

    top: Path
    project: Path = field(init=False)
    trace: Path = field(init=False)
    """A file that exists only if something of the repository was run."""

    def __post_init__(self) -> None:
        home = self.top / "home"
        self.project = home / "code" / "project"
        self.trace = self.top / "was-run"
        self.project.mkdir(parents=True)
        for name in ("cache", "tmp"):
            (self.top / name).mkdir()
        for folder in ("home/code/thesis/chapters", "home/code/project-of-a-friend", "home/.config"):
            (self.top / folder).mkdir(parents=True)
            (self.top / folder / "kept.txt").write_text("what a user has\n")
            (self.top / folder / "kept.py").write_text("import torch\n\nSECRET = 'of the user'\n")
        for path in sorted((self.top / "home").rglob("*"), reverse=True):
            if path != self.project:
                os.utime(path, (time.time() - OLD,) * 2)

    @property
    def environment(self) -> dict[str, str]:
        """For a process that lives in the arena."""
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("GRADGUARD", "XDG"))}
        return {
            **plain,
            "HOME": str(self.top / "home"),
            "XDG_CACHE_HOME": str(self.top / "cache"),
            "TMPDIR": str(self.top / "tmp"),
            "PYTHONPATH": str(SERVER),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
            MARK: str(self.top),
        }

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Begin `gradguard` in the project, as a user's console script would."""
        return subprocess.Popen(
            [sys.executable, *_SAFE_PATH, "-m", "gradguard", *words],
            cwd=self.project,
            env=self.environment,
            preexec_fn=limit,
            start_new_session=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    def run(self, *words: str) -> Done:
        """`gradguard` to its end. A command that does not end is an error."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"{words} did not end within {PATIENCE:.0f} s") from None
        return Done(words, process.returncode, out, err)

    def running(self) -> list[int]:
        """Processes that were started from the arena and have not ended."""
        mark = f"{MARK}={self.top}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdecimal() and int(entry) != os.getpid():
                try:
                    alive = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
                    if alive and mark in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
                except OSError:
                    continue
        return found

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Everything in the home: kind, mode, times, contents. The arena's cache and temporary folder aside."""
        return dict(_look(self.top / "home", ""))


_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()


def limit() -> None:
    """Bound this process and those that it starts."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _look(folder: Path, name: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if len(os.fsencode(folder)) > LONGEST_PATH:
        return
    for entry in os.scandir(os.fsencode(folder)):
        inner = name + "/" + os.fsdecode(entry.name)
        found = entry.stat(follow_symlinks=False)
        what: Any = None
        if stat.S_ISLNK(found.st_mode):
            what = os.readlink(entry.path)
        elif stat.S_ISREG(found.st_mode) and found.st_blocks * 512 < 4_000_000:
            with open(entry.path, "rb") as file:
                what = hashlib.sha256(file.read(4_000_000)).hexdigest()
        size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
        yield inner, (oct(found.st_mode), size, found.st_mtime_ns, what)
        if stat.S_ISDIR(found.st_mode):
            yield from _look(Path(os.fsdecode(entry.path)), inner)
