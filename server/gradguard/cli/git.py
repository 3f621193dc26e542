"""Which files changed since a commit, asked of git itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from gradguard.cli.refused import Refused


class GitFailed(Refused):
    """git cannot say what changed; the message says why."""


def changed_since(ref: str, folder: Path) -> frozenset[Path]:
    """Files (absolute) that differ from where this branch left `ref`, and those git does not know yet.

    Raises GitFailed.
    """
    top = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n"))
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", missing=ref
    )
    base = commit.decode().strip()
    # Shallow clones may know no common commit: what differs from the commit itself is a superset then.
    with contextlib.suppress(GitFailed):
        base = _git(folder, "merge-base", base, "HEAD").decode().strip()
    changed = _git(top, "diff", "--name-only", "-z", "--no-ext-diff", "--diff-filter=d", base, "--")
    untracked = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    names = [*changed.split(b"\0"), *untracked.split(b"\0")]
    return frozenset(Path(os.path.abspath(top / os.fsdecode(name))) for name in names if name)


def _git(folder: Path, *arguments: str, missing: str = "") -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except FileNotFoundError:
        raise GitFailed("--changed-since needs git, which was not found") from None
    if done.returncode:
        if missing:
            raise GitFailed(f'--changed-since: git knows no commit "{missing}"')
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(f"--changed-since: {message[0] if message else 'git failed'}")
    return done.stdout
