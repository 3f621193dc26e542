"""Which files changed, as git tells it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
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


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*.py") if ".git" not in path.parts]


def names(root: Path, ref: str = "main") -> set[str]:
    return {path.name for path in changed_since(ref, root, files(root))}


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
        changed_since("no-such-branch", repository, [])
    with pytest.raises(GitFailed, match="git knows no commit"):
        changed_since("--output=evil", repository, [])


def test_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="not a git repository"):
        changed_since("main", tmp_path, [])


def test_links_submodules_and_files_of_others(repository: Path, tmp_path: Path) -> None:
    (repository / "link.py").symlink_to("old.py")
    (repository / "deep").mkdir()
    (repository / "deep" / ":odd [name].py").write_text("x = 1\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "links")
    base = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, check=True, text=True
    ).stdout.strip()
    (repository / "own").mkdir()
    git(repository / "own", "init", "-q")
    (repository / "own" / "theirs.py").touch()
    (tmp_path / "outside.py").touch()
    (repository / "out.py").symlink_to("../outside.py")
    asked = [*files(repository), tmp_path / "outside.py"]
    assert {path.name for path in changed_since(base, repository, asked)} == {"out.py"}
    (repository / "old.py").write_text("x = 2\n")
    (repository / "deep" / ":odd [name].py").write_text("x = 2\r\n")
    assert names(repository, base) == {"out.py", "old.py", "link.py", ":odd [name].py"}
    git(repository, "checkout", "-q", "old.py")
    (repository / "link.py").unlink()
    (repository / "link.py").symlink_to("gone.py")
    (repository / "deep" / ":odd [name].py").write_text("x = 1\r\n")
    assert names(repository, base) == {"out.py", "link.py"}


def test_many_files(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradguard.cli.git.ARGUMENTS", 100)
    for number in range(60):
        (repository / f"m{number}.py").write_text(f"x = {number}\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "many")
    git(repository, "branch", "here")
    (repository / "m7.py").write_text("x = 0\n")
    assert names(repository, "here") == {"m7.py"}


HOOKS = ("post-index-change", "pre-auto-gc", "reference-transaction", "post-checkout", "fsmonitor-watchman")

PROGRAMS = (
    "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "pager.ls-tree", "pager.check-ignore", "pager.rev-parse", "diff.external",
    "diff.mine.command", "diff.mine.textconv", "filter.mine.clean", "filter.mine.smudge", "filter.mine.process",
    "remote.origin.uploadpack", "credential.helper", "interactive.diffFilter", "gpg.program", "merge.mine.driver",
    "submodule.sub.update", "uploadpack.packObjectsHook", "alias.ls-tree", "trace2.normalTarget",
)  # fmt: skip


@pytest.fixture
def hostile(repository: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A repository that names a program wherever one can be named, and the folder in which each leaves its name."""
    ran = tmp_path / "ran"
    programs = tmp_path / "programs"
    hooks = repository / ".git" / "myhooks"
    for folder in (ran, programs, hooks, repository / ".git" / "hooks", repository / ".git" / "info"):
        folder.mkdir(exist_ok=True)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch '{ran}'/`basename $0`\nexit 1\n")
    script.chmod(0o755)
    for name in HOOKS:
        (hooks / name).symlink_to(script)
        (repository / ".git" / "hooks" / name).symlink_to(script)
    (repository / ".gitattributes").write_text("*.py filter=mine diff=mine merge=mine\n")
    (repository / ".git" / "info" / "attributes").write_text("* filter=mine diff=mine\n")
    for key in PROGRAMS:
        (programs / key).symlink_to(script)
        for file in ("config", "included"):
            where = ["config", "--file", str(repository / ".git" / file)]
            git(repository, *where, key, "!" * key.startswith("alias") + str(programs / key))
    git(repository, "config", "include.path", str(repository / ".git" / "included"))
    git(repository, "config", "core.hooksPath", str(hooks))
    git(repository, "config", "remote.origin.url", str(tmp_path))
    git(repository, "config", "remote.origin.promisor", "true")
    (repository / "edited.py").write_text("x = 2\n")
    (repository / "old.py").write_text("x = 1\n")
    (repository / "new.py").touch()
    return repository, ran


def without_trees(repository: Path) -> None:
    """Remove objects that git would fetch."""
    for file in (repository / ".git" / "objects").glob("??/*"):
        name = file.parent.name + file.name
        words = ["git", "--no-pager", "cat-file", "-t", name]
        kind = subprocess.run(words, cwd=repository, capture_output=True, check=True).stdout
        if kind == b"tree\n":
            file.unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are scripts of a shell")
def test_no_program_that_a_repository_names_is_run(hostile: tuple[Path, Path]) -> None:
    repository, ran = hostile
    assert names(repository) == {"edited.py", "new.py"}
    assert os.listdir(ran) == []
    without_trees(repository)
    for file in ran.iterdir():
        file.unlink()
    with pytest.raises(GitFailed, match="--changed-since: "):
        names(repository)
    assert os.listdir(ran) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are scripts of a shell")
def test_git_itself_would_run_them(hostile: tuple[Path, Path]) -> None:
    """Otherwise the test before this one would say nothing."""
    repository, ran = hostile
    unfiltered = ["-c", "filter.mine.process=", "-c", "filter.mine.clean="]
    for words in (["status"], ["diff", "main"], [*unfiltered, "diff", "--ext-diff"]):
        subprocess.run(
            ["git", *words], cwd=repository, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    without_trees(repository)
    subprocess.run(
        ["git", "ls-tree", "main"], cwd=repository, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert {"core.fsmonitor", "diff.mine.command", "filter.mine.process", "remote.origin.uploadpack"} <= set(
        os.listdir(ran)
    )


def test_a_repository_whose_files_lie_elsewhere_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(GitFailed, match=r"the files of this repository lie elsewhere: .*elsewhere"):
        names(repository)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("name", ["config", "HEAD", "refs/heads/main", "packed-refs", "../.gitignore"])
def test_a_pipe_in_the_place_of_a_file_of_git_ends_in_time(
    repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradguard.cli.gitcall.SECONDS", 2)
    path = repository / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    (repository / "new.py").touch()
    with contextlib.suppress(GitFailed):
        assert names(repository) >= {"new.py"}


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set on Linux")
def test_a_device_in_the_place_of_a_file_of_git_ends_in_time(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradguard.cli.gitcall.MEMORY", 300_000_000)
    (repository / ".git" / "packed-refs").symlink_to("/dev/zero")
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    (repository / ".git" / "refs" / "heads" / "main").symlink_to("/dev/zero")
    with pytest.raises(GitFailed, match="--changed-since: "):
        names(repository)


@pytest.mark.parametrize("entry", ["", ".", "bin"], ids=["empty", "dot", "relative"])
def test_git_is_never_that_of_the_repository(
    repository: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "bin").mkdir()
    for folder in (repository, repository / "bin"):
        program = folder / ("git.exe" if os.name == "nt" else "git")
        program.write_text("#!/bin/sh\ntouch was-run\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", os.pathsep.join([entry, os.environ["PATH"]]))
    assert names(repository) == set()
    monkeypatch.setenv("PATH", entry)
    with pytest.raises(GitFailed, match="needs git, which was not found"):
        names(repository)
    assert not (repository / "was-run").exists()
