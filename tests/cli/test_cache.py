"""The cache answers for the same content only, survives company and damage, and lets nothing lead it astray."""

from __future__ import annotations

import os
import pickle
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gradguard.cli import cache
from gradguard.cli.cache import Cache, digest, open_cache, project_name
from gradguard.cli.cleaning import DAY, HINTED
from gradguard.disk.folder import Unsafe
from tests.trees import everything


def opened(root: Path) -> Cache:
    return open_cache(root, str(root / "cache"))


def entry_of(root: Path, key: str) -> Path:
    (found,) = (root / "cache").glob(f"*/*/{key[:2]}/{key[2:]}.json")
    return found


def test_what_was_put_is_got(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"text")
    assert store.get(key) is None
    store.put(key, {"findings": [1]})
    assert opened(tmp_path).get(key) == {"findings": [1]}
    assert pickle.loads(pickle.dumps(store)).get(key) == {"findings": [1]}


def test_another_process_opens_the_folder_itself(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(digest(b"text"), {"findings": [1]})
    child = os.fork()
    if child == 0:
        os.closerange(3, 1000)
        os._exit(0 if store.get(digest(b"text")) == {"findings": [1]} else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_keys_tell_parts_apart() -> None:
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"a") == digest(b"a")


def test_a_project_is_known_by_where_it_really_lies(tmp_path: Path) -> None:
    for name in ("one/repo", "two/repo", "-ünïcode name.", "." + "x" * 200):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("one")
    assert project_name(tmp_path / "one" / "repo") == project_name(tmp_path / "link" / "repo")
    assert project_name(tmp_path / "one" / "repo") != project_name(tmp_path / "two" / "repo")
    names = [project_name(path) for path in (*tmp_path.iterdir(), Path("/"))]
    assert all(cache.cleaning.PROJECT.fullmatch(name) for name in names), names
    assert max(map(len, names)) < 70


def test_it_hides_from_git_and_from_backups_and_from_others(tmp_path: Path) -> None:
    opened(tmp_path).put(digest(b"x"), {})
    (project,) = (tmp_path / "cache").iterdir()
    assert (project / ".gitignore").read_text() == "*\n"
    assert (project / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache").rglob("*") if path.is_dir()}
    assert modes == {0o700}


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b'{"a": 1}' + b" " * 5_000_000],
    ids=["empty", "half", "no text", "deep list", "deep dictionary", "long number", "large"],
)
def test_a_damaged_entry_is_no_entry_and_is_replaced(damage: bytes, tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"x")
    store.put(key, {"a": 1})
    entry_of(tmp_path, key).write_bytes(damage)
    assert store.get(key) is None
    store.put(key, {"a": 2})
    assert store.get(key) == {"a": 2}


SPECIAL: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda entry, victim: entry.symlink_to(victim),
    "link in a circle": lambda entry, victim: entry.symlink_to(entry.name),
    "hard link": lambda entry, victim: entry.hardlink_to(victim),
    "pipe": lambda entry, victim: os.mkfifo(entry),
    "device": lambda entry, victim: entry.symlink_to("/dev/zero"),
    "folder": lambda entry, victim: entry.mkdir(),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_of_the_cache_is_no_entry(kind: str, tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"x")
    store.put(key, {"a": 1})
    victim = tmp_path / "victim"
    victim.write_text('{"a": 2}')
    os.utime(victim, (1, 1))
    entry = entry_of(tmp_path, key)
    entry.unlink()
    SPECIAL[kind](entry, victim)
    assert store.get(key) is None
    store.put(key, {"a": 3})
    assert victim.read_text() == '{"a": 2}'
    assert victim.stat().st_mtime == 1


def test_many_writers_of_the_same_entries_leave_whole_ones(tmp_path: Path) -> None:
    stores = [opened(tmp_path) for _ in range(4)]
    keys = [digest(str(number).encode()) for number in range(25)]

    def work(store: Cache) -> None:
        for key in keys * 4:
            assert store.get(key) in (None, {"key": key, "pad": "x" * 5000})
            store.put(key, {"key": key, "pad": "x" * 5000})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, stores))
    assert all(stores[0].get(key) == {"key": key, "pad": "x" * 5000} for key in keys)
    assert not list(tmp_path.rglob("*.tmp"))


def test_use_keeps_an_entry_young(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"used")
    store.put(key, {})
    entry = entry_of(tmp_path, key)
    os.utime(entry, (1, time.time() - 20 * DAY))
    store.get(key)
    assert time.time() - entry.stat().st_mtime < DAY


def test_a_place_that_cannot_be_one_gives_no_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(OSError, match=r"[Nn]ot a (directory|folder)"):
        opened(tmp_path)
    (tmp_path / "cache").unlink()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(Unsafe, match="others may write there"):
        opened(tmp_path)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("level", ["top", "above the top", "project", "version", "part", "mark"])
def test_no_link_leads_it_elsewhere(level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a repository, where the user put it all the same."""
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    monkeypatch.chdir(repository)
    key = digest(b"x")
    open_cache(repository, ".cache/gradguard").put(key, {"a": 1})
    (project,) = (repository / ".cache" / "gradguard").iterdir()
    (version,) = (path for path in project.iterdir() if path.is_dir())
    exchanged = {
        "above the top": repository / ".cache",
        "top": repository / ".cache" / "gradguard",
        "project": project,
        "version": version,
        "part": version / key[:2],
        "mark": project / "CACHEDIR.TAG",
    }[level]
    victim = tmp_path / "victim"
    exchanged.rename(victim)
    exchanged.symlink_to(victim)
    before = everything(victim)
    if level == "part":
        store = open_cache(repository, ".cache/gradguard")
        assert store.get(key) is None
        store.put(key, {"a": 2})
        store.first_time(HINTED)
        store.clean(time.time() + 100 * DAY)
    else:
        with pytest.raises(Unsafe, match="a link, which is not followed"):
            open_cache(repository, ".cache/gradguard")
    assert everything(victim) == before


def test_a_link_of_the_user_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to("scratch")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    for named in ("../home", "../home/cache"):
        open_cache(Path.cwd(), named).put(digest(b"x"), {"a": 1})
        assert open_cache(Path.cwd(), str(tmp_path / named[3:])).get(digest(b"x")) == {"a": 1}


def test_something_is_said_for_the_first_time_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.first_time(HINTED)
    assert not store.first_time(HINTED)
    assert not opened(tmp_path).first_time(HINTED)
