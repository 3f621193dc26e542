"""The programs of a commit, read from git's objects: no work tree is made, so that no filter, no hook and no submodule
has a part in it. What a remote repository needs is fetched into a temporary folder, one commit deep."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradguard.cli.gitcall import GitFailed, ask
from gradguard.fleet import names
from gradguard.fleet.model import Source, Tree, Unopened
from gradguard.fleet.names import Gathering

PROTOCOLS = ("https", "http", "ssh", "git", "file")
"""By which repositories are fetched; git knows others, which run programs."""
BATCH_BYTES = 50_000_000
"""Of files that git is asked for at once."""

_ADDRESS = re.compile(rf"({'|'.join(PROTOCOLS)})://\S+|[\w.-]+@[\w.-]+:\S+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FILES = (b"100644", b"100755", b"100664")
_LINK, _SUBMODULE = b"120000", b"160000"


def is_address(text: str) -> bool:
    """Whether a text is the address of a repository elsewhere."""
    return _ADDRESS.fullmatch(text) is not None


def is_bare(folder: str) -> bool:
    """Whether a folder is a repository without a work tree."""
    inner = ("HEAD", "objects", "refs")
    return not os.path.lexists(os.path.join(folder, ".git")) and all(
        os.path.exists(os.path.join(folder, each)) for each in inner
    )


def is_repository(folder: str) -> bool:
    """Whether git has commits in a folder."""
    return os.path.exists(os.path.join(folder, ".git")) or is_bare(folder)


def commit_of(source: Source, seconds: float) -> str:
    """The commit that a source means today, without reading it. Raises Unopened."""
    try:
        if not is_address(source.location):
            return _local_commit(Path(source.location), source.revision or "HEAD")
        if _COMMIT.fullmatch(source.revision):
            return source.revision
        wanted = source.revision or "HEAD"
        listed = ask(
            Path(os.sep), "ls-remote", "--quiet", "--", source.location, wanted, f"{wanted}^{{}}",
            about="git", protocols=PROTOCOLS, seconds=seconds, variables=False,
        )  # fmt: skip
    except GitFailed as error:
        raise Unopened(str(error)) from None
    found = [line.split("\t") for line in listed.decode("utf-8", "replace").splitlines()]
    for form in (f"refs/tags/{wanted}^{{}}", f"refs/tags/{wanted}", f"refs/heads/{wanted}", wanted):
        for commit, name in (pair for pair in found if len(pair) == 2):
            if name == form and _COMMIT.fullmatch(commit):
                return commit
    raise Unopened(f'git: the repository has no branch or tag "{wanted}"')


def read(source: Source, commit: str, seconds: float) -> Tree:
    """The programs of a commit. Raises Unopened."""
    try:
        with _objects(source, commit, seconds) as folder:
            return _tree(folder, commit, seconds)
    except GitFailed as error:
        raise Unopened(str(error)) from None
    except OSError as error:
        raise Unopened(f"git: {error.strerror}") from None


@contextmanager
def _objects(source: Source, commit: str, seconds: float) -> Iterator[Path]:
    """A folder in which git knows the objects of a commit."""
    if not is_address(source.location):
        yield Path(source.location)
        return
    with tempfile.TemporaryDirectory(prefix="gradguard-fleet-") as temporary:
        folder = Path(temporary)
        ask(folder, "init", "--quiet", "--bare", "--template=", ".", about="git", variables=False)
        fetch = (
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-gc",
        )
        words = {"protocols": PROTOCOLS, "seconds": seconds, "about": "git", "variables": False}
        try:
            ask(folder, *fetch, "--", source.location, commit, **words)  # type: ignore[arg-type]
        except GitFailed:
            # Some servers give out no commit by its hash alone.
            everything = tuple(each for each in fetch if each != "--depth=1")
            ask(folder, *everything, "--", source.location, "+refs/*:refs/fetched/*", **words)  # type: ignore[arg-type]
        yield folder


def _local_commit(folder: Path, revision: str) -> str:
    found = ask(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        about="git", missing=revision, variables=False,
    )  # fmt: skip
    return found.decode("ascii", "replace").strip()


def _tree(folder: Path, commit: str, seconds: float) -> Tree:
    gathering = Gathering()
    gathering.tree.revision = commit
    listed = ask(
        folder, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, about="git", seconds=seconds, variables=False
    )  # fmt: skip
    batch: list[tuple[str, str]] = []
    size = 0
    for line in listed.split(b"\0"):
        about, _, raw = line.partition(b"\t")
        if not raw:
            continue
        mode, _, digest, length = about.split()
        shown = os.fsdecode(raw)
        if mode == _SUBMODULE:
            gathering.missed.add(shown, "a submodule, which is not fetched")
            continue
        name = gathering.member(shown)
        if name is None:
            continue
        if mode not in _FILES:
            gathering.missed.add(name, names.LINK if mode == _LINK else "not a file")
        elif gathering.fits(name, int(length)):
            batch.append((name, digest.decode("ascii")))
            size += int(length)
            if size > BATCH_BYTES:
                _take(folder, batch, gathering, seconds)
                batch, size = [], 0
    _take(folder, batch, gathering, seconds)
    return gathering.tree


def _take(folder: Path, batch: list[tuple[str, str]], gathering: Gathering, seconds: float) -> None:
    """Read these objects as they are stored: no filter of the repository is asked."""
    if not batch:
        return
    asked = "".join(f"{digest}\n" for _, digest in batch).encode()
    given = ask(folder, "cat-file", "--batch", stdin=asked, about="git", seconds=seconds, variables=False)
    at = 0
    for name, digest in batch:
        end = given.find(b"\n", at)
        words = given[at:end].split()
        if end < 0 or len(words) != 3:
            gathering.missed.add(name, f"git has no object {digest[:12]}")
            at = end + 1
            continue
        size = int(words[2])
        gathering.put(name, given[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
