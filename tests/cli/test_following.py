"""Imports are followed through the project, and out of it only where the command line says so."""

from __future__ import annotations

import pytest

from tests.cli.running import Done, Runner

SPOILS = "def spoil(y):\n    y.add_(1)\n"
TRAIN = """\
import torch
{}

x = torch.randn(3, requires_grad=True)
y = x.exp()
spoil(y)
y.sum().backward()
"""
"""A mistake that is seen only where `spoil` is read."""


@pytest.fixture
def project(gradguard: Runner) -> Runner:
    """A project with settings, beside a folder that does not belong to it."""
    (gradguard.folder / "pyproject.toml").write_text("[tool.gradguard]\n")
    other = gradguard.folder.parent / "other"
    other.mkdir()
    (other / "lib.py").write_text(SPOILS)
    gradguard.write(train=TRAIN.format("from lib import spoil"))
    return gradguard


def followed(done: Done) -> bool:
    return [code for _, code, _ in done.found] == ["GG101"]


def settle(project: Runner, *src: str) -> None:
    (project.folder / "pyproject.toml").write_text(f"[tool.gradguard]\nsrc = {list(src)}\n")


def test_a_folder_of_src_that_leads_out_is_not_followed_and_that_is_said(project: Runner) -> None:
    settle(project, ".", "../other")
    done = project("check", "--format", "json")
    assert not followed(done)
    assert done.code == 0
    assert done.err == (
        f'gradguard: note: {project.folder}/pyproject.toml: src: "../other" leads out of the project and is not '
        "followed, but for --src ../other\n"
    )


def test_the_command_line_says_what_is_followed(project: Runner) -> None:
    for _ in range(2):  # what the cache holds for one is not taken for the other
        assert not followed(project("check", "--format", "json"))
        done = project("check", "--format", "json", "--src", "../other")
        assert followed(done)
        assert done.err == ""
    settle(project, "../other")
    done = project("check", "--format", "json", "--src", "../other", "--src", ".")
    assert followed(done)
    assert done.err == ""
    refused = project("check", "--src", "nowhere")
    assert (refused.code, refused.err) == (2, "gradguard: error: --src nowhere: no such folder\n")


@pytest.mark.parametrize("src", ["/", "sub/../..", "link"])
def test_no_way_of_writing_leads_out(project: Runner, src: str) -> None:
    (project.folder / "link").symlink_to("../other")
    (project.folder.parent / "lib.py").write_text(SPOILS)
    settle(project, src)
    done = project("check", "--format", "json")
    assert not followed(done)
    assert f'src: "{src}" leads out of the project' in done.err


def test_links_in_the_project_are_followed(project: Runner) -> None:
    (project.folder / "inner").mkdir()
    (project.folder / "inner" / "real.py").write_text(SPOILS)
    (project.folder / "lib.py").symlink_to("inner/real.py")
    done = project("check", "--format", "json", "train.py")
    assert followed(done)
    (project.folder / "lib.py").unlink()
    (project.folder / "lib").symlink_to("inner")
    project.write(train=TRAIN.format("from lib.real import spoil"))
    assert followed(project("check", "--format", "json", "train.py"))


def test_links_that_lead_out_are_not_followed_and_that_is_said(project: Runner) -> None:
    (project.folder / "lib.py").symlink_to("../other/lib.py")
    done = project("check", "--format", "json", "train.py")
    assert not followed(done)
    assert done.err == "gradguard: warning: not read: lib.py: it lies out of the project (imported)\n"
    (project.folder / "lib.py").unlink()
    (project.folder / "pkg").symlink_to("../other")
    project.write(train=TRAIN.format("from pkg.lib import spoil"))
    for _ in range(2):  # the second time from the cache
        done = project("check", "--format", "json", "train.py")
        assert not followed(done)
        assert done.err == "gradguard: warning: not read: pkg/lib.py: it lies out of the project (imported)\n"
    assert followed(project("check", "--format", "json", "train.py", "--src", "../other"))


def test_imports_that_climb_out_are_not_followed(project: Runner) -> None:
    (project.folder / "a").mkdir()
    (project.folder / "a" / "train.py").write_text(TRAIN.format("from ...other.lib import spoil"))
    done = project("check", "--format", "json", "a")
    assert not followed(done)
    assert "other/lib.py: it lies out of the project (imported)" in done.err
    (project.folder / "a" / "train.py").write_text(TRAIN.format("from ..lib import spoil"))
    (project.folder / "lib.py").write_text(SPOILS)
    assert followed(project("check", "--format", "json", "a"))


def test_without_settings_the_repository_is_the_project(project: Runner) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.write(train="")
    for name in (".git", "lib", "scripts"):
        (project.folder / name).mkdir()
    (project.folder / "lib" / "own.py").write_text(SPOILS)
    inside = Runner(project.folder / "scripts")
    inside.write(train=TRAIN.format("from ..lib.own import spoil"))
    assert followed(inside("check", "--format", "json"))
    assert followed(Runner(project.folder.parent)("check", "--format", "json", "project"))
    inside.write(train=TRAIN.format("from ...other.lib import spoil"))
    assert not followed(inside("check", "--format", "json"))
    assert not followed(Runner(project.folder.parent)("check", "--format", "json", "project"))


def test_without_anything_the_working_folder_is_the_project_or_the_package_of_a_file(project: Runner) -> None:
    (project.folder / "pyproject.toml").unlink()
    around = Runner(project.folder.parent)
    project.write(train=TRAIN.format("from ..other.lib import spoil"))
    assert followed(around("check", "--format", "json", "project/train.py"))
    assert not followed(project("check", "--format", "json"))
    elsewhere = Runner(project.folder.parent / "elsewhere")
    elsewhere.folder.mkdir()
    assert not followed(elsewhere("check", "--format", "json", "../project/train.py"))
    for name in ("__init__", "own"):
        project.write(**{name: SPOILS})
    (project.folder / "sub").mkdir()
    (project.folder / "sub" / "__init__.py").touch()
    (project.folder / "sub" / "train.py").write_text(TRAIN.format("from ..own import spoil"))
    assert followed(elsewhere("check", "--format", "json", "../project/sub/train.py"))
    assert followed(Runner(project.folder / "sub")("check", "--format", "json", "train.py"))


def test_a_folder_that_is_named_through_a_link_is_a_project_of_its_own(project: Runner) -> None:
    (project.folder.parent / "other" / "train.py").write_text(TRAIN.format("from lib import spoil"))
    (project.folder / "link").symlink_to("../other")
    done = project("check", "--format", "json", "link")
    assert followed(done)
    assert done.err == ""


def test_a_usual_folder_that_leads_out_is_told_without_settings_too(project: Runner) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / "src").symlink_to("../other")
    done = project("check", "--format", "json")
    assert not followed(done)
    assert (
        'gradguard: note: src: "src" leads out of the project and is not followed, but for --src src\n'
        in done.err
    )
    done = project("check", "--format", "json", "--src", "src")
    assert followed(done)
    assert "note" not in done.err


def test_a_package_whose_own_file_is_none_is_told(project: Runner) -> None:
    (project.folder / "lib").mkdir()
    (project.folder / "lib" / "__init__.py").symlink_to("__init__.py")
    done = project("check", "--format", "json", "train.py")
    assert not followed(done)
    assert done.err == (
        "gradguard: warning: not read: lib/__init__.py: symbolic links that lead in a circle (imported)\n"
    )
