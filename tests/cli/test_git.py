"""Which files changed, as git tells it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gradguard.cli.git import GitFailed, changed_since


def git(folder: Path, *words: str) -> None:
    settings = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo with space"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for name in ("old.py", "edited.py", "gone.py"):
        (root / name).write_text("x = 1\n")
    (root / ".gitignore").write_text("ignored.py\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "work")
    return root


def names(root: Path, ref: str = "main") -> set[str]:
    return {path.name for path in changed_since(ref, root)}


def test_edited_staged_committed_and_new_files_but_not_deleted_or_ignored(repository: Path) -> None:
    (repository / "edited.py").write_text("x = 2\n")
    (repository / "gone.py").unlink()
    (repository / "ignored.py").write_text("")
    (repository / "néw.py").write_text("")
    (repository / "staged.py").write_text("")
    git(repository, "add", "staged.py")
    (repository / "done.py").write_text("")
    git(repository, "add", "done.py")
    git(repository, "commit", "-qm", "done", "--", "done.py")
    assert names(repository) == {"edited.py", "néw.py", "staged.py", "done.py"}


def test_changes_on_the_other_branch_do_not_count(repository: Path) -> None:
    git(repository, "checkout", "-q", "main")
    (repository / "old.py").write_text("x = 3\n")
    git(repository, "commit", "-qam", "elsewhere")
    git(repository, "checkout", "-q", "work")
    assert names(repository) == set()


def test_an_unknown_commit_is_named(repository: Path) -> None:
    with pytest.raises(GitFailed, match='git knows no commit "no-such-branch"'):
        changed_since("no-such-branch", repository)
    with pytest.raises(GitFailed, match="git knows no commit"):
        changed_since("--output=evil", repository)


def test_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="not a git repository"):
        changed_since("main", tmp_path)
