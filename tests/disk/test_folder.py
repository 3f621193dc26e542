"""What is done in an open folder is done there and through no link, whatever takes its place meanwhile."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gradguard.disk import folder as subject
from gradguard.disk.folder import DRAFT, Folder, Unsafe
from gradguard.disk.reading import Unreadable
from tests.trees import everything

POSIX = subject.BY_DESCRIPTOR


@pytest.fixture(params=["by handle", "by path"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of working in a folder; the second is that of Windows."""
    monkeypatch.setattr(subject, "BY_DESCRIPTOR", POSIX and request.param == "by handle")
    return str(request.param)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """What nobody asked to be touched."""
    (tmp_path / "victim" / "deep").mkdir(parents=True)
    (tmp_path / "victim" / "a").write_text("precious")
    return tmp_path / "victim"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own" / "in").mkdir(parents=True)
    (tmp_path / "own" / "a").write_text("old")
    return tmp_path / "own"


ACTS: dict[str, Callable[[Folder], object]] = {
    "reads": lambda folder: folder.read("a"),
    "writes": lambda folder: folder.write("a", b"new"),
    "writes anew": lambda folder: folder.write("b", b"new"),
    "creates": lambda folder: folder.create("b"),
    "touches": lambda folder: folder.touch("a", 1.0),
    "removes": lambda folder: folder.remove("a"),
    "removes a folder": lambda folder: folder.remove_empty("in"),
    "makes a folder": lambda folder: folder.below(["new"], make=True),
    "looks": lambda folder: folder.look("a"),
    "lists": lambda folder: list(folder.names()),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_link_on_the_way_leads_nowhere(act: str, own: Path, victim: Path, way: str) -> None:
    (own / "link").symlink_to(victim)
    before = everything(victim)
    for names in (["link"], ["in", os.pardir, "link"], ["link", "deep"]):
        with Folder.open(own) as start, pytest.raises((Unsafe, ValueError)), start.below(names) as folder:
            ACTS[act](folder)
    assert everything(victim) == before


@pytest.mark.parametrize("act", ACTS)
def test_a_link_in_the_place_of_an_open_folder_leads_nowhere(
    act: str, own: Path, victim: Path, way: str
) -> None:
    before = everything(victim)
    with Folder.open(own.parent) as start, start.below(["own"]) as folder:
        moved = own.rename(own.parent / "moved")
        own.symlink_to(victim)
        if way == "by path":
            with pytest.raises((Unsafe, Unreadable)):
                ACTS[act](folder)
        else:
            inside = everything(moved)
            ACTS[act](folder)
            assert (everything(moved) == inside) == (act in ("reads", "looks", "lists"))
    assert everything(victim) == before


@pytest.mark.parametrize("act", ACTS)
def test_a_link_in_the_place_of_an_entry_is_not_followed(act: str, own: Path, victim: Path, way: str) -> None:
    before = everything(victim)
    for name, target in (("a", "a"), ("b", "a"), ("in", ""), ("new", "")):
        entry = own / name
        if entry.is_dir():
            entry.rmdir()
        entry.unlink(missing_ok=True)
        entry.symlink_to(victim / target)
    with Folder.open(own) as folder:
        try:
            ACTS[act](folder)
        except (OSError, Unreadable):
            assert act not in ("removes", "looks", "lists")
        else:
            assert act in ("removes", "looks", "lists", "touches", "creates")
    if not (way == "by path" and act == "touches"):
        assert everything(victim) == before


def test_what_a_link_is_refused_with(own: Path, victim: Path, way: str) -> None:
    (own / "link").symlink_to(victim)
    with Folder.open(own) as folder:
        with pytest.raises(Unsafe, match="a link, which is not followed") as caught:
            folder.below(["link"])
        assert caught.value.filename == str(own / "link")
        with pytest.raises(NotADirectoryError, match="a file, not a folder"):
            folder.below(["a"], make=True)
        with pytest.raises(Unsafe, match="a folder, not a file"):
            folder.write("in", b"")
        with pytest.raises(Unreadable, match="a link, not a file"):
            folder.read("link")


@pytest.mark.skipif(not POSIX, reason="needs handles of folders")
@pytest.mark.parametrize("act", ["reads", "opens"])
def test_a_link_put_between_the_look_and_the_act_is_not_followed(
    act: str, own: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a" if act == "reads" else "in"
    look = os.lstat

    def then_exchange(path: str, **how: int) -> os.stat_result:
        found = look(path, **how)
        (own / name).rename(own / "gone")
        (own / name).symlink_to(victim / "a" if act == "reads" else victim)
        return found

    with Folder.open(own) as folder:
        monkeypatch.setattr(os, "lstat", then_exchange)
        with pytest.raises((OSError, Unreadable)):
            folder.read(name) if act == "reads" else folder.below([name])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "../victim/a", "in/../a", "a\0"])
def test_only_names_are_looked_up(name: str, own: Path, victim: Path, way: str) -> None:
    before = everything(own.parent)
    with Folder.open(own) as folder:
        for act in (
            folder.look, folder.read, folder.create, folder.remove, folder.remove_empty,
            lambda name: folder.write(name, b""), lambda name: folder.touch(name, 1.0), lambda name: folder.below([name]),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="no name"):
                act(name)
    assert everything(own.parent) == before


def test_a_closed_folder_is_no_folder(own: Path) -> None:
    folder = Folder.open(own)
    folder.close()
    folder.close()
    for act in ACTS.values():
        with pytest.raises((OSError, Unreadable)):
            act(folder)


def test_files_are_written_whole_with_the_mode_that_is_asked_for(own: Path, way: str) -> None:
    with Folder.open(own) as folder:
        folder.write("a", b"new", mode=0o640)
        folder.write("b", b"x" * 3_000_000, durable=True)
        assert folder.read("a") == b"new"
        with pytest.raises(Unreadable, match="larger than 1 MB"):
            folder.read("b", 1_000_000)
        assert {*folder.names()} == {"a", "b", "in"}
        assert not folder.create("a")
        assert folder.read("a") == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((own / "a").stat().st_mode) == 0o640
    assert stat.S_IMODE((own / "b").stat().st_mode) == 0o666 & ~mask


def test_another_name_of_a_file_keeps_its_content_and_is_not_read(own: Path, victim: Path, way: str) -> None:
    (own / "hard").hardlink_to(victim / "a")
    with Folder.open(own) as folder:
        with pytest.raises(Unreadable, match="several names"):
            folder.read("hard")
        folder.write("hard", b"new")
        assert folder.read("hard") == b"new"
    assert (victim / "a").read_text() == "precious"


def test_what_is_no_file_is_not_read(own: Path, way: str) -> None:
    os.mkfifo(own / "pipe")
    (own / "zero").symlink_to("/dev/zero")
    with Folder.open(own) as folder:
        for name, why in (("pipe", "a named pipe"), ("zero", "a link"), ("in", "a folder")):
            with pytest.raises(Unreadable, match=why):
                folder.read(name)


def test_folders_are_made_for_their_user_alone(own: Path, way: str) -> None:
    with Folder.open(own) as folder, folder.below(["one", "two"], make=True) as made:
        made.require_private()
        assert made.path == str(own / "one" / "two")
    assert stat.S_IMODE((own / "one").stat().st_mode) == 0o700


@pytest.mark.skipif(not POSIX, reason="folders are private by where they lie")
def test_a_folder_of_others_is_not_private(own: Path) -> None:
    for mode in (0o770, 0o702):
        own.chmod(mode)
        with Folder.open(own) as folder, pytest.raises(Unsafe, match="others may write there"):
            folder.require_private()
    own.chmod(0o755)
    with Folder.open(own) as folder:
        folder.require_private()
    if os.geteuid() == 0:
        os.chown(own, 1234, 1234)
        with Folder.open(own) as folder, pytest.raises(Unsafe, match="belongs to another user"):
            folder.require_private()


def test_a_fault_while_writing_leaves_the_old(own: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with Folder.open(own) as folder, pytest.raises(OSError, match="no space left"):
        folder.write("a", b"new", durable=True)
    assert {path.name for path in own.iterdir()} == {"a", "in"}
    assert (own / "a").read_text() == "old"


def test_without_files_that_have_no_name_drafts_have_one(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.extend(os.listdir(own)))
    with Folder.open(own) as folder:
        folder.write("a", b"new", durable=True)
        assert [name for name in seen if DRAFT.fullmatch(name)]
        assert {*folder.names()} == {"a", "in"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
def test_a_kill_while_writing_leaves_the_old_and_nothing_else(own: Path) -> None:
    child = os.fork()
    if child == 0:
        os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        with Folder.open(own) as folder:
            folder.write("a", b"new", durable=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert {path.name for path in own.iterdir()} == {"a", "in"}
    assert (own / "a").read_text() == "old"
