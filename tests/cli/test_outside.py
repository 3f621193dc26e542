"""Whatever a repository holds, nothing outside of it and of what the user named is written or removed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from gradguard.cli import cache
from tests.cli.running import RAISES, Runner
from tests.trees import everything

OLD = time.time() - 400 * 24 * 60 * 60
LINKS = {
    ".gradguard": "../outside",
    ".git": "../outside",
    ".gitignore": "../outside/report.json",
    "__pycache__": "../outside",
    "cachedir": "../outside",
    "circle.py": "circle.py",
    "dangling.py": "../outside/missing.py",
    "folder": "../outside",
    "linked.py": "../outside/train.py",
    "loop": ".",
    "part/linked.py": "../train.py",
    "report.json": "../outside/report.json",
    "up": "..",
}
"""What lies in the project, and where it leads."""


@pytest.fixture
def project(gradguard: Runner) -> Runner:
    """A repository in which every name that may be written to is a link, and neighbours that are old."""
    gradguard.write(train=RAISES)
    (gradguard.folder / "pyproject.toml").touch()
    (gradguard.folder / "part").mkdir()
    for name, target in LINKS.items():
        (gradguard.folder / name).symlink_to(target)
    outside = gradguard.folder.parent / "outside"
    lookalike = outside / cache.project_name(gradguard.folder) / ("0" * 20) / "ab"
    for folder in (outside, gradguard.folder.parent / "thesis" / "deep", lookalike):
        folder.mkdir(parents=True, exist_ok=True)
    (outside / "train.py").write_text(RAISES)
    for name in ("report.json", "last-run.json", "hinted", "cleaned"):
        (outside / name).write_text("precious")
    (lookalike / f"{'c' * 38}.json").write_text("precious")
    for folder in lookalike.parents[:2]:
        (folder / cache.cleaning.TAG).write_bytes(cache.cleaning.TAG_TEXT)
    age(gradguard.folder.parent)
    return gradguard


def age(top: Path) -> None:
    for path in (*top.rglob("*"), top):
        os.utime(path, (OLD, OLD), follow_symlinks=False)


OLD_CACHES = {
    "a link to where the project lies": lambda place, outside: place.symlink_to(".."),
    "a link to a neighbour": lambda place, outside: place.symlink_to(outside),
    "links in it": lambda place, outside: filled(place, outside),
    "a cache with the mark of today": lambda place, outside: shutil.copytree(outside, place),
}


def filled(place: Path, outside: Path) -> None:
    """With a link at every level at which a cache was written."""
    version = place / cache.fingerprint()
    version.mkdir(parents=True)
    for each in (place / ("0" * 20), place / ".gitignore", place / "hinted", version / "ab"):
        each.symlink_to(outside)


@pytest.mark.parametrize("kind", OLD_CACHES)
def test_where_a_cache_lay_nothing_is_written_or_removed(kind: str, project: Runner) -> None:
    place = project.folder / ".gradguard_cache"
    OLD_CACHES[kind](place, project.folder.parent / "outside")
    age(project.folder.parent)
    cache_folder = project.folder.parent / "cache"
    before = everything(project.folder.parent, cache_folder)
    assert "GG101" in project("check", ".").out
    assert everything(project.folder.parent, cache_folder) == before


COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "check": (("check", "."), ()),
    "named": (("check", "train.py", "folder"), ()),
    "diff": (("check", ".", "--diff"), ()),
    "fix": (("check", ".", "--fix"), ("train.py",)),
    "fix of a part": (("check", "part", "--fix"), ()),
    "output": (("check", ".", "--output", "new.json", "--format", "json"), ("new.json",)),
    "output to a link": (("check", ".", "--output", "report.json"), ()),
    "output through a link": (("check", ".", "--output", "folder/new.json"), ()),
    "baseline": (("check", ".", "--write-baseline", "new.json"), ("new.json",)),
    "baseline to a link": (("check", ".", "--write-baseline", "report.json"), ()),
    "cache": (("check", ".", "--cache-dir", "here"), ("here",)),
    "cache in a link": (("check", ".", "--cache-dir", "cachedir"), ()),
    "cache through a link": (("check", ".", "--cache-dir", "up/outside"), ()),
    "cache through a link, by a full path": (("check", ".", "--cache-dir", "{}/folder/cache"), ()),
    "run": (("run", "train.py"), ()),
}
"""Each with what it may write in the project."""


@pytest.mark.parametrize("name", COMMANDS)
def test_only_what_was_named_is_written(name: str, project: Runner) -> None:
    words, written = COMMANDS[name]
    around = project.folder.parent
    but = [around / "cache", *(project.folder / each for each in written)]
    before = everything(around, *but)
    done = project(*(word.format(project.folder) for word in words))
    assert "internal error" not in done.err
    assert everything(around, *but) == before
    for each in written:
        assert (project.folder / each).exists()
    if "link" in name:
        assert "a link, which is not followed" in done.err
