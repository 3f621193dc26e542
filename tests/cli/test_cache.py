"""The cache answers for the same content only, survives company, and cleans up after itself."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gradguard.cli import cache
from gradguard.cli.cache import DAY, Cache, digest, open_cache


def opened(root: Path) -> Cache:
    found = open_cache(root)
    assert found is not None
    return found


def test_what_was_put_is_got(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"text")
    assert store.get(key) is None
    store.put(key, {"findings": [1]})
    assert opened(tmp_path).get(key) == {"findings": [1]}


def test_keys_tell_parts_apart() -> None:
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"a") == digest(b"a")


def test_it_hides_from_git_and_from_backups(tmp_path: Path) -> None:
    opened(tmp_path)
    assert (tmp_path / cache.NAME / ".gitignore").read_text() == "*\n"
    assert (
        (tmp_path / cache.NAME / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )


def test_a_damaged_entry_is_no_entry(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"x")
    store.put(key, {"a": 1})
    (file,) = store.folder.rglob("*.json")
    for damage in (b"", b"{", b"[1]", b"\xff"):
        file.write_bytes(damage)
        assert store.get(key) is None


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
    assert not list(stores[0].folder.rglob("*.tmp"))


def test_old_entries_and_old_versions_are_removed_once_a_day(tmp_path: Path) -> None:
    store = opened(tmp_path)
    now = time.time()
    old, new = digest(b"old"), digest(b"new")
    store.put(old, {})
    store.put(new, {})
    _age(store, old, now - 40 * DAY)
    stale, recent = store.top / "stale", store.top / "recent"
    for folder, age in ((stale, 20), (recent, 2)):
        folder.mkdir()
        os.utime(folder, (now - age * DAY, now - age * DAY))
    store.clean(now)
    assert store.get(old) is None
    assert store.get(new) == {}
    assert recent.exists()
    assert not stale.exists()
    _age(store, new, now - 40 * DAY)
    store.clean(now + 60)
    assert len(list(store.folder.rglob("*.json"))) == 1
    store.clean(now + 2 * DAY)
    assert not list(store.folder.rglob("*.json"))


def _age(store: Cache, key: str, when: float) -> None:
    os.utime(store.folder / key[:2] / f"{key[2:]}.json", (when, when))


def test_use_keeps_an_entry_young(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = digest(b"used")
    store.put(key, {})
    _age(store, key, time.time() - 20 * DAY)
    store.get(key)
    (file,) = store.folder.rglob("*.json")
    assert time.time() - file.stat().st_mtime < DAY


def test_a_place_that_cannot_be_written_gives_no_cache(tmp_path: Path) -> None:
    (tmp_path / cache.NAME).write_text("a file in the way")
    assert open_cache(tmp_path) is None


def test_something_is_said_for_the_first_time_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.first_time("hinted")
    assert not store.first_time("hinted")
