"""What is written is written whole, keeps what the file was, and goes through no link of a repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradguard.disk.folder import Unsafe
from gradguard.disk.links import until_project
from gradguard.disk.writing import replace_file
from tests.trees import everything


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "report").write_text("precious")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "repository"


LINKS = {
    "report": "../victim/report",
    "new": "../victim/new",
    "out/report": "../victim",
    "out/new": "../victim",
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_of_a_repository_is_not_written_through(name: str, repository: Path) -> None:
    (repository / Path(name).parts[0]).symlink_to(LINKS[name])
    before = everything(repository.parent)
    for path in (repository / name, Path("repository") / name, repository / ".git" / ".." / name):
        with pytest.raises(Unsafe, match="a link, which is not followed"):
            replace_file(path, b"new", project_links=False)
    assert everything(repository.parent) == before


def test_a_link_of_a_folder_that_was_unpacked_is_not_written_through(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").rmdir()
    (repository / "report").symlink_to("../victim/report")
    monkeypatch.chdir(repository)
    with pytest.raises(Unsafe):
        replace_file(Path("report"), b"new", project_links=False)


def test_links_of_the_user_are_followed(repository: Path) -> None:
    (repository.parent / "report").symlink_to("victim/report")
    (repository.parent / "home").symlink_to(".")
    os.chdir(repository)
    replace_file(Path("../report"), b"one", project_links=False)
    assert Path("../victim/report").read_bytes() == b"one"
    replace_file(Path("../home/repository/report"), b"two", project_links=False)
    assert Path("report").read_bytes() == b"two"


def test_how_far_a_path_is_the_users(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "inner" / ".git").mkdir(parents=True)
    assert until_project(repository / "inner" / "a" / "b") == (
        str(repository.parent),
        ("repository", "inner", "a", "b"),
    )
    monkeypatch.chdir("/")
    assert until_project(repository / "inner" / "a") == (str(repository), ("inner", "a"))
    assert until_project(repository) == (str(repository), ())
    assert until_project("/dev/stdout") == ("/dev/stdout", ())
    (repository.parent / "alias").symlink_to("repository")
    monkeypatch.chdir(repository)
    (repository / ".git").rmdir()
    assert until_project(repository.parent / "alias" / "a") == (str(repository.parent / "alias"), ("a",))


def test_a_device_or_a_pipe_is_written_to(repository: Path) -> None:
    reading, writing = os.pipe()
    replace_file(Path(f"/dev/fd/{writing}"), b"text", project_links=False)
    assert os.read(reading, 10) == b"text"
    terminal, device = os.openpty()
    replace_file(Path(os.ttyname(device)), b"text", project_links=False)
    assert os.read(terminal, 10) == b"text"
    os.mkfifo(repository / "pipe")
    with pytest.raises(OSError, match="nobody reads from it"):
        replace_file(repository / "pipe", b"text")


@pytest.mark.parametrize("name", [".", "..", "/", "circle", "missing/report", "pipe"])
def test_what_cannot_be_written_says_so(name: str, repository: Path) -> None:
    (repository / "circle").symlink_to("circle")
    os.mkfifo(repository / "pipe")
    os.chdir(repository)
    for project_links in (True, False):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            replace_file(Path(name), b"new", project_links=project_links)
        assert caught.value.strerror
    assert sorted(os.listdir(repository)) == [".git", "circle", "pipe"]
