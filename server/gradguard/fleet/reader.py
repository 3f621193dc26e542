"""The process that reads: it opens sources and checks packages, one request after the other, within limits.

    request                              answers
    {"do": "commit", "source": ...}      {"end": true, "commit": ...}
    {"do": "open", "source": ...}        {"package": ...} with the package for each, {"end": true, "revision": ..., "unread": ...}
    {"do": "check", "from": ...}         {"file": ...} for each, {"end": true}

Whatever a source makes of it, this process alone is lost: who started it does so again.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from gradguard.check.settings import Settings
from gradguard.check.workspace import ReadingWorkspace, source_roots
from gradguard.cli import plain
from gradguard.cli.worker import Checked, Checker, Job
from gradguard.disk.reading import decode
from gradguard.fleet import archives, folders, repositories
from gradguard.fleet.frames import Incoming, packed, send, unpacked
from gradguard.fleet.model import Kind, Options, Source, Tree, Unopened, plain_unread
from gradguard.fleet.packages import TOP, Package, packages, settings_of
from gradguard.source.decode import Decoded


def main(words: Sequence[str]) -> None:
    """Answer requests on stdin until it ends. `words`: bytes of memory that may be used."""
    # Answers have a pipe of their own; whatever prints writes to nobody.
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _limit_memory(int(words[0]))
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        head, parts = unpacked(requests.get())
        why = ""
        try:
            _answer(answers, head, parts)
        except Unopened as error:
            why = str(error)
        except MemoryError as error:
            # What its frames hold is needed to say so.
            traceback.clear_frames(error.__traceback__)
            why = "it needs more memory than it may take"
        if why:
            send(answers, packed({"end": True, "unopened": why}))


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Take requests, and end this process with the one that has the other end of the pipe."""
    incoming = Incoming()
    while data := os.read(0, 1 << 20):
        incoming.feed(data)
        while (message := incoming.take()) is not None:
            requests.put(message)
    os._exit(0)


def _limit_memory(memory: int) -> None:
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError, ValueError):  # some systems have no such limit
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _answer(answers: int, head: dict[str, Any], parts: list[bytes]) -> None:
    if head["do"] == "check":
        _check(answers, head, Package.of(parts[0]))
        return
    source = Source.of(head["source"])
    if head["do"] == "commit":
        commit = repositories.commit_of(source, head["seconds"])
        send(answers, packed({"end": True, "commit": commit}))
        return
    tree = _tree(source, head)
    given = Options.of(head["options"])
    for package in packages(tree, given):
        about = {"package": package.root, "key": package.key(head["version"], given)}
        send(answers, packed(about, [package.packed()], level=0))
    told = plain_unread(tree.missed.told())
    send(answers, packed({"end": True, "revision": tree.revision, "unread": told}))


def _tree(source: Source, head: dict[str, Any]) -> Tree:
    if source.kind is Kind.GIT:
        return repositories.read(source, head["commit"], head["seconds"])
    tree = archives.read(source.location) if source.kind is Kind.ARCHIVE else folders.read(source.location)
    tree.revision = source.revision
    return tree


def _check(answers: int, head: dict[str, Any], package: Package) -> None:
    settings, _ = settings_of(package.settings, package.root, Options.of(head["options"]))
    checker = TreeChecker({package.path(name): data for name, data in package.files.items()})
    for index, name in enumerate(package.checked):
        if index < head["from"]:
            continue
        began = time.monotonic()
        _limit_seconds(head["file_seconds"])
        checked = checker.check(Job(package.path(name), settings, data=package.files[name]))
        _limit_seconds(0)
        send(answers, packed(_plain(index, checked, time.monotonic() - began)))
    send(answers, packed({"end": True}))


def _plain(index: int, checked: Checked, seconds: float) -> dict[str, Any]:
    report = checked.report
    troubles = tuple(
        (each.message.removesuffix("; --verbose shows where"), each.line) for each in checked.troubles
    )
    return {
        "file": index,
        "seconds": seconds,
        "torch": checked.uses_torch,
        "kept": plain.from_kept(plain.Kept(report, troubles, {}, {})),
        "faults": [number for number, limit in enumerate(report.limits) if limit.fault],
        "unread": any(each.unread or each.lost for each in checked.troubles),
        "imported": [[each.path, each.message] for each in checked.imported],
    }


def _limit_seconds(seconds: float) -> None:
    """Be ended after so much processor time; 0: no more."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


class TreeChecker(Checker):
    """Checks files of a package that lies in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(None)
        self._files = files
        self._one: ReadingWorkspace | None = None

    def workspace(self, settings: Settings) -> ReadingWorkspace:
        """All files of a package have one."""
        if self._one is None:
            roots, _ = source_roots(settings, TOP, lambda folder: folder.startswith(TOP))
            self._one = ReadingWorkspace(self._files.__contains__, self._text, roots)
        return self._one

    def _read(self, path: str) -> Decoded:
        return decode(self._files[path])
