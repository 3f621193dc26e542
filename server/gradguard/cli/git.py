"""Which files changed since a commit.

Git is asked only for what stands in commits. What lies on the disk is compared here: a file whose bytes are not those
of the commit counts as changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gradguard.cli.gitcall import GitFailed, ask
from gradguard.disk.reading import Unreadable, read_bytes

ARGUMENTS = 20_000 if os.name == "nt" else 100_000
"""Bytes of names that are asked for at once."""

_LINK = b"120000"


def changed_since(ref: str, folder: Path, files: Iterable[Path]) -> frozenset[Path]:
    """Those of the files that differ from where this branch left `ref`, or that git does not know yet.

    Files (absolute) out of the repository that the folder lies in are not among them. Raises GitFailed.
    """
    top = os.path.realpath(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n"))
    if not _name(os.path.realpath(folder), top):
        raise GitFailed(f"--changed-since: the files of this repository lie elsewhere: {top}")
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", missing=ref
    )
    base = commit.decode().strip()
    # Shallow clones may know no common commit: what differs from the commit itself is a superset then.
    with contextlib.suppress(GitFailed):
        base = _git(folder, "merge-base", base, "HEAD").decode().strip()

    places = _Places(top)
    named: dict[str, list[Path]] = {}
    for path in files:
        for name in places.names(path):
            named.setdefault(name, []).append(path)
    known = dict(_entries(top, base, list(named)))
    changed = {name for name, entry in known.items() if not _same(os.path.join(top, name), *entry)}
    new = [name for name in named if name not in known]
    changed.update(set(new) - _ignored(top, new))
    return frozenset(path for name in changed for path in named[name])


class _Places:
    """Names of files in a repository."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._others: dict[str, bool] = {top: False}

    def names(self, path: Path) -> list[str]:
        """The name of a file behind its links, and that of the link itself; none of what belongs to another repository."""
        real = os.path.realpath(path)
        places = [real]
        if os.path.islink(path):
            places.append(os.path.join(os.path.realpath(path.parent), path.name))
        return [
            name
            for place in places
            if (name := _name(place, self._top)) and not self._of_another(os.path.dirname(place))
        ]

    def _of_another(self, folder: str) -> bool:
        """Whether a folder below the top lies in a submodule or a repository of its own."""
        if folder not in self._others:
            own = os.path.lexists(os.path.join(folder, ".git"))
            self._others[folder] = own or self._of_another(os.path.dirname(folder))
        return self._others[folder]


def _name(path: str, top: str) -> str:
    """The path from the top with slashes, "." for the top itself; empty for what lies elsewhere."""
    if path == top:
        return "."
    inside = top.rstrip(os.sep) + os.sep
    return path[len(inside) :].replace(os.sep, "/") if path.startswith(inside) else ""


def _entries(top: str, commit: str, names: Sequence[str]) -> Iterator[tuple[str, tuple[bytes, str]]]:
    """Mode and hash of those names that the commit has."""
    for some in _batches(names):
        listed = _git(Path(top), "--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", *some)
        for line in listed.split(b"\0"):
            about, _, name = line.partition(b"\t")
            if name:
                mode, _, digest = about.split()
                yield os.fsdecode(name), (mode, digest.decode())


def _batches(names: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for name in names:
        if size > ARGUMENTS:
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += len(os.fsencode(name)) + 1
    if batch:
        yield batch


def _same(path: str, mode: bytes, digest: str) -> bool:
    """Whether a file holds what the commit has."""
    try:
        if mode == _LINK:
            return _hashed(os.fsencode(os.readlink(path)), digest)
        data = read_bytes(path)
    except (OSError, Unreadable):  # why is told when it is checked
        return False
    # Line ends are converted at will on the way to the disk.
    return _hashed(data, digest) or (b"\r\n" in data and _hashed(data.replace(b"\r\n", b"\n"), digest))


def _hashed(data: bytes, digest: str) -> bool:
    algorithm = hashlib.sha1 if len(digest) == 40 else hashlib.sha256
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest() == digest


def _ignored(top: str, names: Sequence[str]) -> set[str]:
    """Names that git is told to ignore; none where it cannot say."""
    if not names:
        return set()
    given = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
    with contextlib.suppress(GitFailed):
        found = _git(Path(top), "check-ignore", "-z", "--stdin", stdin=given, none=1)
        return {os.fsdecode(name).removeprefix("./") for name in found.split(b"\0")}
    return set()


def _git(folder: Path, *arguments: str, missing: str = "", stdin: bytes = b"", none: int = 0) -> bytes:
    return ask(folder, *arguments, about="--changed-since", missing=missing, stdin=stdin, none=none)
