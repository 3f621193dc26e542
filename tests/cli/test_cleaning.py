"""What of a cache is old is removed, and nothing that a cache has not made."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradguard.cli import cleaning
from gradguard.cli.cache import Cache, digest, open_cache
from gradguard.cli.cleaning import DAY, HINTED, TAG, TAG_TEXT
from tests.trees import everything

NOW = time.time()
OLD, OTHER = "0" * 20, "1" * 20
"""Names of versions."""
GONE = f"gone-{'2' * 20}"
"""The name of a project."""


class Made:
    """A cache of this project and version, and how to put old things beside it."""

    def __init__(self, root: Path) -> None:
        self.store: Cache = open_cache(root, str(root / "cache"))
        self.top = root / "cache"
        (self.project,) = self.top.iterdir()
        (self.version,) = (path for path in self.project.iterdir() if path.is_dir())

    def folder(self, place: Path, mark: bytes | None = TAG_TEXT, entries: int = 3) -> Path:
        """A folder of a version, or one of a project when another is put in it."""
        for number in range(entries):
            key = digest(str(number).encode())
            (place / key[:2]).mkdir(parents=True, exist_ok=True)
            (place / key[:2] / f"{key[2:]}.json").write_text("{}")
        place.mkdir(parents=True, exist_ok=True)
        if mark is not None:
            (place / TAG).write_bytes(mark)
        return place

    def clean(self, now: float = NOW) -> None:
        self.store.clean(now)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def age(path: Path, days: float) -> None:
    """Everything there is of this age."""
    for each in (*path.rglob("*"), path) if path.is_dir() else (path,):
        os.utime(each, (NOW - days * DAY, NOW - days * DAY), follow_symlinks=False)


def test_old_entries_are_removed_once_a_day(made: Made) -> None:
    old, new = digest(b"old"), digest(b"new")
    for key in (old, new):
        made.store.put(key, {})
    files = {key: made.version / key[:2] / f"{key[2:]}.json" for key in (old, new)}
    age(files[old], 40)
    made.clean()
    assert (made.store.get(old), made.store.get(new)) == (None, {})
    age(files[new], 40)
    made.clean(NOW + 60)
    assert files[new].exists()
    made.clean(NOW + 2 * DAY)
    assert not files[new].exists()


def test_old_versions_and_projects_are_removed(made: Made) -> None:
    for name, days in ((OLD, 20), (OTHER, 2)):
        age(made.folder(made.project / name), days)
    gone, kept = made.top / GONE, made.top / f"kept-{'3' * 20}"
    for project, days in ((gone, 100), (kept, 60)):
        made.folder(project, entries=0)
        for name in (".gitignore", "cleaned", HINTED):
            (project / name).touch()
        made.folder(project / OLD)
        age(project, days)
    made.clean()
    assert not (made.project / OLD).exists()
    assert not gone.exists()
    assert len(list((made.project / OTHER).rglob("*.json"))) == 3
    assert len(list(kept.rglob("*.json"))) == 3


def test_what_a_kill_left_is_removed_after_a_day(made: Made) -> None:
    made.store.put(digest(b"x"), {})
    (part,) = (path for path in made.version.iterdir() if path.is_dir())
    drafts = [folder / f".gradguard-{'a' * 16}.tmp" for folder in (made.project, made.version, part)]
    for draft in drafts:
        draft.touch()
    made.clean(NOW)
    assert all(draft.exists() for draft in drafts)
    made.clean(NOW + 2 * DAY)
    assert not any(draft.exists() for draft in drafts)


FOREIGN: dict[str, Callable[[Made], Path]] = {
    "a folder without the mark": lambda made: made.folder(made.project / OLD, mark=None),
    "a folder with another mark": lambda made: made.folder(made.project / OLD, mark=b"Signature: 8a47"),
    "a folder with an endless mark": lambda made: made.folder(
        made.project / OLD, mark=TAG_TEXT + b"x" * 9999
    ),
    "a folder with another name": lambda made: made.folder(made.project / "version"),
    "a project without the mark": lambda made: made.folder(made.top / GONE / OLD),
    "a project with another name": lambda made: project_of(made, "thesis"),
    "a project with half a name": lambda made: project_of(made, f"thesis-{'2' * 19}"),
    "a folder with another name in a version": lambda made: filed(made.version / "abc" / f"{'a' * 38}.json"),
    "a link in the place of an entry": lambda made: linked(made.version / "ab" / f"{'a' * 38}.json"),
    "a pipe in the place of an entry": lambda made: piped(made.version / "ab" / f"{'a' * 38}.json"),
    "a folder that others may write to": lambda made: writable(made.folder(made.project / OLD)),
    "a file in the place of a version": lambda made: filed(made.project / OLD),
    "a file in the place of a project": lambda made: filed(made.top / GONE),
    "a file in the place of a part": lambda made: filed(made.version / "ab"),
    "a file with another name in a part": lambda made: filed(made.version / "ab" / "notes.txt"),
    "a folder in the place of an entry": lambda made: filed(made.version / "ab" / f"{'a' * 38}.json" / "x"),
    "a file that has another name elsewhere": lambda made: doubled(made.version / "ab" / f"{'a' * 38}.json"),
}


def project_of(made: Made, name: str) -> Path:
    made.folder(made.top / name, entries=0)
    return made.folder(made.top / name / OLD).parent


def linked(path: Path) -> Path:
    path.parent.mkdir(mode=0o700)
    path.symlink_to("nowhere")
    return path


def piped(path: Path) -> Path:
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path)
    return path


def writable(folder: Path) -> Path:
    folder.chmod(0o777)
    return folder


def filed(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("precious")
    return path


def doubled(path: Path) -> Path:
    (filed(path).parents[3] / "other").hardlink_to(path)
    return path


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_no_cache_made_stays(kind: str, made: Made) -> None:
    foreign = FOREIGN[kind](made)
    age(made.top, 400)
    before = everything(foreign)
    made.clean()
    assert everything(foreign) == before


@pytest.mark.parametrize("where", ["project", "version", "part"])
def test_a_folder_with_something_else_in_it_keeps_that(where: str, made: Made) -> None:
    gone = made.folder(made.top / GONE, entries=0)
    version = made.folder(gone / OLD)
    part = next(path for path in version.iterdir() if path.is_dir())
    foreign = filed({"project": gone, "version": version, "part": part}[where] / "notes.txt")
    age(gone, 400)
    made.clean()
    assert foreign.read_text() == "precious"
    assert (gone / TAG).exists()
    assert (version / TAG).exists() == (where != "project")
    assert not list(gone.rglob("*.json"))


LINKED: dict[str, Callable[[Made, Path], Path]] = {
    "project": lambda made, victim: made.top / GONE,
    "version": lambda made, victim: made.project / OLD,
    "version of another project": lambda made, victim: made.folder(made.top / GONE, entries=0) / OLD,
    "part": lambda made, victim: made.version / "ab",
    "part of another version": lambda made, victim: made.folder(made.project / OLD) / "ab",
}


@pytest.mark.parametrize("level", LINKED)
def test_nothing_is_removed_through_a_link(level: str, made: Made, tmp_path: Path) -> None:
    """What the link leads to looks as if a cache had made it."""
    victim = made.folder(tmp_path / "victim")
    made.folder(victim / OLD)
    filed(victim / f"{'a' * 38}.json")
    filed(victim / f".gradguard-{'a' * 16}.tmp")
    link = LINKED[level](made, victim)
    link.symlink_to(victim)
    age(tmp_path, 400)
    before = everything(victim)
    made.clean()
    assert everything(victim) == before
    assert link.is_symlink()


@pytest.mark.parametrize("name", [TAG, HINTED, "cleaned", ".gitignore"])
def test_links_in_the_place_of_its_files_are_not_followed(name: str, made: Made, tmp_path: Path) -> None:
    victim = filed(tmp_path / "victim")
    victim.write_bytes(TAG_TEXT)
    (made.project / name).unlink(missing_ok=True)
    (made.project / name).symlink_to(victim)
    gone = made.folder(made.top / GONE, entries=0)
    (gone / name).unlink(missing_ok=True)
    (gone / name).symlink_to(victim)
    age(tmp_path, 400)
    before = everything(tmp_path, made.top)
    made.clean()
    made.store.first_time(HINTED)
    made.store.first_time(name)
    assert everything(tmp_path, made.top) == before


def test_one_clean_up_looks_at_so_much_and_the_next_ones_elsewhere(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of many that are young is found in time."""
    made.folder(made.version, entries=200)
    *_, last = sorted(made.version.rglob("*.json"))
    monkeypatch.setattr(cleaning, "LOOKS", 330)
    random.seed(1)
    days = 0
    while last.exists() and days < 100:
        days += 2
        age(made.version, -days)
        age(last, 400)
        made.clean(NOW + days * DAY)
    assert 2 < days < 100
