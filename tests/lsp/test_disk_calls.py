"""Calls to a disk that does not answer are given up, few of them are, and what answers is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradguard.disk.reading import Unreadable
from gradguard.lsp import disk_calls
from gradguard.lsp.disk_calls import MOST, TOGETHER, DiskCalls, Hangs


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What calls wait for that hang; set at the end of the test."""
    for name, seconds in (("PATIENCE", 0.2), ("HASTE", 0.05), ("RECOVERY", 0.05)):
        monkeypatch.setattr(disk_calls, name, seconds)
    event = threading.Event()
    yield event
    event.set()


def hang(disk: DiskCalls, path: str, never: threading.Event) -> bool:
    """Whether a call for a path that hangs was tried, and not refused at once."""
    tried = []

    def work() -> None:
        disk.touch(path)
        tried.append(path)
        never.wait()

    with pytest.raises(Hangs):
        disk.call(path, work)
    return bool(tried)


def test_what_answers_is_given_back_with_its_errors(tmp_path: Path) -> None:
    disk = DiskCalls()
    before = threading.active_count()
    (tmp_path / "a.py").write_text("# -*- coding: latin-1 -*-\n", "latin-1")
    assert disk.text(str(tmp_path / "a.py")) == "# -*- coding: latin-1 -*-\n"
    assert disk.utf8(str(tmp_path / "a.py")) == "# -*- coding: latin-1 -*-\n"
    with pytest.raises(Unreadable):
        disk.text(str(tmp_path / "none.py"))
    with pytest.raises(ZeroDivisionError):
        disk.call("x", lambda: 1 // 0)
    assert threading.active_count() <= before + 1


def test_what_hangs_is_told_and_left_alone_and_the_rest_is_read(never: threading.Event) -> None:
    told: list[str] = []
    disk = DiskCalls(hangs=told.append)
    assert hang(disk, "/far/a.py", never)
    assert not hang(disk, "/far/a.py", never)
    assert told == ["/far/a.py"]
    assert disk.call("/far/b.py", lambda: disk.touch("/far/b.py") or 7) == 7


def test_a_folder_of_which_several_files_hang_is_left_alone(never: threading.Event) -> None:
    disk = DiskCalls()
    names = [f"m{n}{end}" for n in range(TOGETHER) for end in ("/__init__.py", ".py")][:TOGETHER]
    assert all(hang(disk, f"/far/{name}", never) for name in names)
    assert not hang(disk, "/far/other.py", never)
    assert not hang(disk, "/far/below/other.py", never)
    for path in ("/farther/a.py", "/near/a.py", "/a.py"):
        assert disk.call(path, lambda path=path: disk.touch(path) or 7) == 7  # type: ignore[misc]


def test_few_threads_are_given_up(never: threading.Event) -> None:
    disk = DiskCalls()
    before = threading.active_count()
    tried = [hang(disk, f"/{number}/a.py", never) for number in range(3 * MOST)]
    assert tried == [True] * MOST + [False] * 2 * MOST
    assert threading.active_count() <= before + MOST


def test_what_comes_back_is_told_and_may_be_asked_for_again(never: threading.Event) -> None:
    answers: list[str] = []
    came = threading.Event()
    disk = DiskCalls(answers=lambda path: (answers.append(path), came.set()))
    assert hang(disk, "/far/a.py", never)
    never.set()
    assert came.wait(20)
    assert answers == ["/far/a.py"]
    while disk.alone("/far/a.py"):
        pass
    assert disk.call("/far/a.py", lambda: disk.touch("/far/a.py") or 7) == 7


def test_a_thread_that_comes_back_does_nothing_for_who_went_on(never: threading.Event) -> None:
    came = threading.Event()
    disk = DiskCalls(answers=lambda path: came.set())
    went: list[str] = []

    def work() -> None:
        disk.touch("/far/a.py")
        never.wait()
        disk.touch("/far/b.py")
        went.append("on")

    with pytest.raises(Hangs):
        disk.call("/far/a.py", work)
    never.set()
    assert came.wait(20)
    assert not went
