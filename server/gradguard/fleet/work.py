"""What a task does, whoever runs it: opens a source, or checks a package, in the reading process of this worker.

A row is a text in JSON and some bytes, so that the rows of all tasks have one schema.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradguard
from gradguard.fleet.child import Ended, Reader
from gradguard.fleet.frames import Broken
from gradguard.fleet.model import Kind, Limits, Options, Source, Unopened
from gradguard.fleet.packages import Package
from gradguard.fleet.results import Collected, Result
from gradguard.fleet.store import COMMITS, RESULTS, Store, place

Row = dict[str, Any]

TRIES = 2
"""How often a source, or a file, is tried before it is given up."""


@lru_cache(maxsize=1)
def version() -> str:
    """A mark of this gradguard down to each byte, its table of operations included, and of the grammar it runs on."""
    package = Path(gradguard.__file__).parent
    hashed = hashlib.blake2b(f"{gradguard.__version__} {sys.version_info[:2]}".encode(), digest_size=12)
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            hashed.update(f"{path.relative_to(package).as_posix()}\0".encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()


@lru_cache(maxsize=4)
def _reader(limits: Limits) -> Reader:
    """The reading process of this worker."""
    return Reader(limits)


@dataclass(frozen=True)
class Work:
    """What all tasks of a scan have in common."""

    version: str
    options: Options
    limits: Limits
    store: Store

    def open(self, row: Row) -> Iterator[Row]:
        """The packages of a source. One that has none, or cannot be opened, gives one row that says so."""
        head = json.loads(row["head"])
        source = Source.of(head["source"])
        about = {"source": head["index"], "parts": 1, "part": 0, "state": "nothing"}
        if self.version != version():
            said = "this worker has another version of gradguard; install the same one on all machines"
            yield _row({**about, "state": "unopened", "why": said})
            return
        try:
            found = self._opened(source)
        except Unopened as error:
            yield _row({**about, "state": "unopened", "why": str(error)})
            return
        about |= {"revision": found["revision"], "unread": found["unread"]}
        packages = found["packages"]
        if not packages:
            yield _row(about)
        for part, (root, key) in enumerate(packages):
            blob = found["blobs"].get(key, b"")
            yield _row(
                {**about, "parts": len(packages), "part": part, "state": "package", "root": root, "key": key},
                blob,
            )
            about["unread"] = []

    def _opened(self, source: Source) -> dict[str, Any]:
        """Revision, packages and what was not read. Raises Unopened."""
        commit = ""
        if source.kind is Kind.GIT:
            commit = self._ask({"do": "commit", "source": source.plain()})[-1][0]["commit"]
            kept = self._commit(commit)
            if kept is not None:
                return {**kept, "revision": commit, "blobs": {}}
        request = {
            "do": "open",
            "source": source.plain(),
            "commit": commit,
            "options": self.options.plain(),
            "version": self.version,
        }
        *given, (end, _) = self._ask(request)
        found = {
            "revision": end["revision"],
            "unread": end["unread"],
            "packages": [[head["package"], head["key"]] for head, _ in given],
        }
        if commit:
            kept_as = json.dumps({key: found[key] for key in ("packages", "unread")})
            self.store.put(place(COMMITS, self._commit_key(commit)), kept_as.encode())
        # What was checked before does not travel.
        blobs = {head["key"]: parts[0] for head, parts in given if not self._kept(head["key"])}
        return {**found, "blobs": blobs}

    def _commit(self, commit: str) -> dict[str, Any] | None:
        """What is known of a commit, if all its packages were checked: then it need not even be fetched."""
        data = self.store.get(place(COMMITS, self._commit_key(commit)))
        if data is None:
            return None
        try:
            known: dict[str, Any] = json.loads(data)
            return known if all(self._kept(key) for _, key in known["packages"]) else None
        except (ValueError, KeyError, TypeError):
            return None

    def _commit_key(self, commit: str) -> str:
        head = json.dumps([commit, self.version, self.options.plain()])
        return hashlib.blake2b(head.encode(), digest_size=20).hexdigest()

    def _kept(self, key: str) -> bool:
        return self.store.has(place(RESULTS, key))

    def _ask(self, request: dict[str, Any]) -> list[tuple[dict[str, Any], list[bytes]]]:
        """All answers about a source, which is tried twice. Raises Unopened."""
        seconds = self.limits.seconds
        for _ in range(TRIES):
            try:
                answers = list(
                    _reader(self.limits).ask({**request, "seconds": seconds}, seconds=seconds + 10)
                )
            except Ended as how:
                said = f"{how}, {TRIES} times"
                continue
            if "unopened" in answers[-1][0]:
                raise Unopened(answers[-1][0]["unopened"])
            return answers
        raise Unopened(said)

    def check(self, row: Row) -> Row:
        """A row of what came of a package."""
        head = json.loads(row["head"])
        if head["state"] != "package":
            return _row(head)
        key = head["key"]
        data = self.store.get(place(RESULTS, key))
        try:
            kept = Result.of(data) if data is not None else None
        except ValueError:  # a disk may be damaged
            kept = None
        result = kept
        if result is None:
            try:
                package = Package.of(row["blob"])
            except Broken:
                self.store.remove(place(RESULTS, key))
                why = "its kept result was damaged, and is removed; scan it again"
                return _row({**head, "state": "unopened", "why": why})
            result = self._checked(package)
            self.store.put(place(RESULTS, key), result.data())
        return _row({**head, "state": "checked", "kept": kept is not None, **_figures(result)})

    def _checked(self, package: Package) -> Result:
        """Check a package; a file at which the process ends twice is given up, the others are not."""
        collected = Collected(package)
        tries: dict[int, int] = {}
        at = 0
        ends = time.monotonic() + self.limits.seconds
        while at < len(package.checked):
            left = ends - time.monotonic()
            if left <= 0:
                for index in range(at, len(package.checked)):
                    collected.lost(
                        index, f"not reached in the {self.limits.seconds:g} s that a package may take"
                    )
                break
            request = {
                "do": "check",
                "from": at,
                "options": self.options.plain(),
                "file_seconds": self.limits.file_seconds,
            }
            try:
                for answer, _ in _reader(self.limits).ask(request, [package.packed()], seconds=left):
                    if "unopened" in answer:
                        raise Ended(answer["unopened"])
                    if not answer.get("end"):
                        collected.take(answer)
                        at = int(answer["file"]) + 1
                break
            except (Ended, ValueError) as how:
                tries[at] = tries.get(at, 0) + 1
                if tries[at] >= TRIES and at < len(package.checked):
                    collected.lost(at, f"{how}, {TRIES} times; `exclude` leaves the file out")
                    at += 1
        return collected.result(self.options.context)


def _figures(result: Result) -> dict[str, Any]:
    return {
        "counts": result.counts(),
        "files": result.files,
        "torch_files": result.torch_files,
        "lines": result.loc,
        "seconds": round(result.seconds, 3),
        "lost": [[each.path, each.why] for each in result.unread],
        "limits": len(result.limits),
    }


def _row(head: dict[str, Any], blob: bytes = b"") -> Row:
    return {"head": json.dumps(head), "blob": blob}
