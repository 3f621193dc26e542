"""Imports are followed to regular files of the project, and farther only where the user's own settings lead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODULE = "def f(x): return x\n"
RELATED = {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}


async def led(folder: Path, file: Path, **settings: Any) -> list[str]:
    """Names of the files outside of `file` to which `import other` in it leads."""
    editor = Inside()
    await editor.initialize(rootUri=folder.as_uri(), capabilities=RELATED, initializationOptions=settings)
    editor.open(file.as_uri(), "import torch\nboom(other.f)\n")
    (found,) = await editor.diagnostics(file.as_uri())
    editor.server.session.stop()
    places = [each["location"]["uri"] for each in found["relatedInformation"]]
    return [Path(uri).name for uri in places if uri != file.as_uri()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project, beside which lies a folder that is none of its business."""
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "other.py").write_text(MODULE)
    return project


async def test_a_module_of_the_project(project: Path) -> None:
    (project / "other.py").write_text(MODULE)
    assert await led(project, project / "a.py") == ["other.py"]


async def test_a_link_inside_of_the_project(project: Path) -> None:
    (project / "real.py").write_text(MODULE)
    (project / "other.py").symlink_to("real.py")
    assert await led(project, project / "a.py") == ["other.py"]


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_link_out_of_the_project(project: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    if what == "file":
        (project / "other.py").symlink_to("../outside/other.py")
    else:
        (project / "src").symlink_to("../outside")
    assert await led(project, project / "a.py") == []
    assert any("other.py" in each or "src" in each for each in caplog.messages) == (what == "file")


async def test_folders_that_the_project_names_out_of_itself(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gradguard]\nsrc = ["../outside"]\n')
    assert await led(project, project / "a.py") == []


async def test_folders_that_the_user_names(project: Path) -> None:
    assert await led(project, project / "a.py", src=["../outside"]) == ["other.py"]
    (project / "pyproject.toml").write_text('[tool.gradguard]\nsrc = ["."]\n')
    assert await led(project, project / "a.py", src=["../outside"]) == ["other.py"]


async def test_the_package_around_an_open_folder(tmp_path: Path) -> None:
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    (inner.parent.parent / "other.py").write_text(MODULE)
    (inner.parent / "other.py").write_text(MODULE)
    editor_file = inner / "a.py"
    assert await led(inner, editor_file) == []  # beside the package lies what is another's
    (tmp_path / ".git").mkdir()
    assert await led(inner, editor_file) == ["other.py"]


ODD: dict[str, Callable[[Path], Any]] = {
    "a named pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "in a circle": lambda path: path.symlink_to(path),
    "leads nowhere": lambda path: path.symlink_to("nowhere"),
    "larger than": lambda path: path.write_text("x = 1\n" * 3_000_000),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\n"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("why", ODD)
async def test_what_is_no_file_is_said_once(
    project: Path, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    ODD[why](project / "other.py")
    editor = Inside()
    await editor.initialize(rootUri=project.as_uri())
    for name in ("a.py", "b.py", "a.py"):
        uri = (project / name).as_uri()
        editor.open(uri, "import torch\nboom(other.f)\n")
        await editor.quiet()
        assert len(editor.server.publisher.known()[uri].items) == 1
    (line,) = [each for each in caplog.messages if "not read" in each]
    assert "other.py" in line
    assert why in line
    editor.server.session.stop()
