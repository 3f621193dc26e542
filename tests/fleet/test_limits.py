"""What dies, hangs or eats memory costs itself: it is tried twice, and then told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradguard.fleet import work
from gradguard.fleet.child import Ended, Reader
from gradguard.fleet.model import Limits
from tests.cli.running import RAISES
from tests.fleet.making import Here, counts, folder, scanned, unread

READER = """\
import os, signal, sys, time
from gradguard.fleet import reader
from gradguard.fleet.reader import TreeChecker
inner = TreeChecker.check
def check(self, job):
    words = job.path.rpartition("/")[2].partition(".")[0]
    note = os.environ["NOTE"]
    with open(note, "a") as file:
        file.write(words + " ")
    if words == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if words == "once" and open(note).read().split().count("once") == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if words == "spins":
        while True:
            pass
    if words == "eats":
        kept = [bytes(1 << 20) for _ in range(4000)]
    return inner(self, job)
TreeChecker.check = check
reader.main(sys.argv[1:])
"""


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reading process in which files with some names do harm; the names of all files that it was at."""
    path = tmp_path / "note"
    path.touch()
    monkeypatch.setenv("NOTE", str(path))
    monkeypatch.setattr("gradguard.fleet.child.PROGRAM", READER)
    work._reader.cache_clear()
    yield path
    work._reader.cache_clear()


def test_a_file_at_which_the_process_dies_is_tried_twice_and_told(tmp_path: Path, note: Path) -> None:
    top = folder(tmp_path / "p", dict.fromkeys(("a.py", "dies.py", "once.py", "z.py"), RAISES))
    came = scanned(tmp_path / "store", top)
    assert note.read_text().split() == ["a", "dies", "dies", "once", "once", "z"]
    assert counts(came) == {"p": {"error GG101": 3}}
    ((path, why),) = unread(came)
    assert path == "dies.py"
    assert why.startswith("its process was ended from outside (signal 9, SIGKILL)")
    assert why.endswith(", 2 times; `exclude` leaves the file out")
    (head,) = came.heads.values()
    assert head["files"] == 3


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path, note: Path) -> None:
    top = folder(tmp_path / "p", dict.fromkeys(("a.py", "spins.py", "z.py"), RAISES))
    came = scanned(tmp_path / "store", top, limits=Limits(file_seconds=2))
    assert note.read_text().split() == ["a", "spins", "spins", "z"]
    assert counts(came) == {"p": {"error GG101": 2}}
    assert unread(came) == [
        ("spins.py", "took more than 2 s of processor time, 2 times; `exclude` leaves the file out")
    ]


def test_a_file_that_eats_memory_is_given_up(tmp_path: Path, note: Path) -> None:
    top = folder(tmp_path / "p", dict.fromkeys(("a.py", "eats.py", "z.py"), RAISES))
    came = scanned(tmp_path / "store", top, limits=Limits(memory=300_000_000))
    assert counts(came) == {"p": {"error GG101": 2}}
    ((path, why),) = unread(came)
    assert path == "eats.py"
    assert "2 times" in why


def test_a_package_that_takes_too_long_is_told_file_by_file(tmp_path: Path, note: Path) -> None:
    top = folder(tmp_path / "p", dict.fromkeys(("a.py", "spins.py", "z.py"), RAISES))
    came = scanned(tmp_path / "store", top, limits=Limits(seconds=4, file_seconds=1000))
    assert counts(came) == {"p": {"error GG101": 1}}
    assert [path for path, _ in unread(came)] == ["spins.py", "z.py"]
    assert all("4 s" in why for _, why in unread(came))


def test_a_process_that_is_gone_is_started_again(tmp_path: Path) -> None:
    reader = Reader(Limits())
    source = {"kind": "folder", "location": str(folder(tmp_path / "p")), "name": "p", "revision": ""}
    request = {"do": "open", "source": source, "options": {}, "seconds": 10, "version": ""}
    with pytest.raises(Ended, match="exit code 1"):
        list(reader.ask(request, seconds=30))
    request["options"] = {"select": [], "ignore": [], "torch": "", "all": False, "context": 0}
    answers = list(reader.ask(request, seconds=30))
    assert [bool(head.get("end")) for head, _ in answers] == [False, True]
    reader.close()


def test_what_is_lost_with_a_worker_is_asked_for_once_more_and_told(tmp_path: Path) -> None:
    tops = [folder(tmp_path / name, {"train.py": RAISES}) for name in ("a", "b", "c")]
    lost: list[str] = []

    def lose(row: dict[str, str], alone: bool) -> bool:
        index = json.loads(row["head"])["source"]
        gone = index == 1 or (index == 2 and not alone)
        lost.extend(["bc"[index - 1]] * gone)
        return gone

    here = Here(lose)
    came = scanned(tmp_path / "store", *tops, here=here)
    assert here.asked == [3, 2]
    assert lost == ["b", "c", "b"]
    assert counts(came) == {"a": {"error GG101": 1}, "c": {"error GG101": 1}}
    assert unread(came) == [("", "it was lost with the worker that read it, 2 times")]


def test_what_comes_twice_counts_once(tmp_path: Path) -> None:
    class Twice(Here):
        def stream(self, rows, first, then, *, alone=False):  # type: ignore[no-untyped-def]
            for row in super().stream(rows, first, then, alone=alone):
                yield row
                yield row

    came = scanned(tmp_path / "store", folder(tmp_path / "a"), folder(tmp_path / "b"), here=Twice())
    assert len(came.heads) == 2
    assert came.share == 1.0


def test_a_worker_with_another_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradguard.fleet.model import Options
    from gradguard.fleet.store import Store

    other = work.Work("another", Options(), Limits(), Store(str(tmp_path / "store")))
    row = {
        "head": json.dumps(
            {"index": 0, "source": {"kind": "folder", "location": "", "name": "", "revision": ""}}
        )
    }
    (said,) = other.open(row)
    assert "install the same one on all machines" in json.loads(said["head"])["why"]
