"""A repository's links lead no farther than the folders that were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.disk.links import Bounds, Projects


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("project/package", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").touch()
    return tmp_path / "project"


def test_what_lies_inside_is_inside(project: Path) -> None:
    assert Bounds([str(project)]).holds(str(project / "package" / "a.py"))
    assert not Bounds([str(project / "pack")]).holds(str(project / "package" / "a.py"))


def test_links_inside_are_followed_and_links_out_are_not(project: Path) -> None:
    (project / "in.py").symlink_to("package/a.py")
    (project / "out.py").symlink_to("../other/a.py")
    (project / "folder").symlink_to("../other")
    (project / "around").symlink_to("folder/../project/package")
    bounds = Bounds([str(project)])
    assert bounds.holds(str(project / "in.py"))
    assert bounds.holds(str(project / "around" / "a.py"))
    assert not bounds.holds(str(project / "out.py"))
    assert not bounds.holds(str(project / "folder" / "a.py"))
    assert not bounds.holds(str(project / ".." / "other" / "a.py"))
    assert Bounds([str(project), str(project.parent / "other")]).holds(str(project / "out.py"))


def test_a_folder_is_inside_of_itself(project: Path) -> None:
    (project / "out").symlink_to("../other")
    bounds = Bounds([str(project)])
    assert bounds.holds_folder(str(project))
    assert bounds.holds_folder(str(project / "missing"))
    assert not bounds.holds_folder(str(project.parent))
    assert not bounds.holds_folder(str(project / "out"))
    assert Bounds([]).holds_folder("/")


def test_the_folder_itself_may_lie_behind_a_link(project: Path) -> None:
    (project.parent / "link").symlink_to("project")
    bounds = Bounds([str(project.parent / "link")])
    assert bounds.holds(str(project.parent / "link" / "package" / "a.py"))
    assert bounds.holds(str(project / "package" / "a.py"))


def test_without_a_folder_everything_is_inside(project: Path) -> None:
    assert Bounds([]).holds(str(project / "package" / "a.py"))


def test_what_belongs_to_a_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "package" / "sub").mkdir()
    for name in ("package", "package/sub"):
        (project / name / "__init__.py").touch()
    (project / "link").symlink_to("../other")
    inner, package, other = (str(project / name) for name in ("package/sub", "package", "../other"))
    other = str(project.parent / "other")
    monkeypatch.chdir("/")
    assert Projects().within(inner, package) == (package,)
    assert Projects().within(inner, "") == ("/",)
    monkeypatch.chdir(other)
    assert Projects().within(inner, "") == (package, other)
    assert Projects().within(other, "") == (other,)
    monkeypatch.chdir(inner)
    assert Projects().within(inner, "") == (package,)
    assert Projects().within(str(project / "link"), str(project)) == (str(project), other)
    (project / ".git").touch()
    assert Projects().within(inner, "") == (str(project),)
    assert Projects().within(str(project / "link"), "") == (other, inner)
