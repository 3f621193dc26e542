"""A scan reads regular files inside of the workspace, and names what it does not read."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradguard.lsp import scanner, walk
from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\n"


async def scan(folder: Path) -> tuple[dict[str, int], Inside]:
    editor = Inside()
    await editor.initialize(rootUri=folder.as_uri())
    command = {"command": "gradguard.server.checkWorkspace", "arguments": []}
    answer = await editor.request("workspace/executeCommand", command)
    editor.server.session.stop()
    editor.server.scanner.stop()
    result: dict[str, int] = answer["result"]
    return result, editor


def shown(editor: Inside) -> set[str]:
    """Files for which something is shown."""
    return {Path(uri).name for uri, found in editor.server.publisher.known().items() if found.items}


def outside(path: Path) -> Path:
    """A file out of the workspace."""
    folder = path.parent.parent / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "secret.py").write_text(FIND)
    return folder


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


ODD: dict[str, Callable[[Path], Any]] = {
    "a named pipe": os.mkfifo,
    "a socket": bound,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "in a circle": lambda path: path.symlink_to(path),
    "o such file": lambda path: path.symlink_to("nowhere"),
    "larger than": lambda path: path.write_text("import torch\n" * 1_300_000),
    "not UTF-8": lambda path: path.write_bytes(b"import torch\n\xff\n"),
    "leads out of the workspace": lambda path: path.symlink_to(outside(path) / "secret.py"),
    "a link that leads out of the workspace": lambda path: path.symlink_to(outside(path)),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("why", ODD)
async def test_what_is_not_read_costs_itself_and_is_named(
    tmp_path: Path, why: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    for name in ("a.py", "c.py"):
        (top / name).write_text(FIND)
    monkeypatch.chdir(tmp_path)
    ODD[why](top / "b.py")
    result, editor = await scan(top)
    assert (result["findings"], result["unread"]) == (2, 1)
    assert shown(editor) == {"a.py", "c.py"}
    (line,) = [each for each in caplog.messages if each.startswith("not read")]
    assert str(top / "b.py") in line
    assert why in line


async def test_the_end_of_the_progress_says_what_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MAX_FILES", 3)
    monkeypatch.setattr(scanner, "MAX_FILES", 3)
    for name in "abcde":
        (tmp_path / f"{name}.py").write_text(FIND)
    (tmp_path / "a.py").write_bytes(b"\xff")
    editor = Inside()
    await editor.initialize(rootUri=tmp_path.as_uri(), capabilities={"window": {"workDoneProgress": True}})
    command = {"command": "gradguard.server.checkWorkspace", "arguments": []}
    number = editor.ask("workspace/executeCommand", command)
    created = await editor.wait(lambda each: each.get("method") == "window/workDoneProgress/create")
    editor.answer(created["id"])
    answer = await editor.wait(lambda each: each.get("id") == number and "method" not in each)
    assert answer["result"] == {"files": 3, "findings": 2, "unread": 1}
    ends = [each["params"]["value"] for each in editor.passed if each.get("method") == "$/progress"]
    assert ends[-1]["message"] == "1 not read, named in the log, only the first 3 files"
    editor.server.session.stop()
    editor.server.scanner.stop()


async def test_folders_that_lead_back_are_walked_once(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.py").write_text(FIND)
    for at in ("in/deep/up", "in/self", "again"):
        (tmp_path / at).symlink_to(tmp_path / "in")
    (tmp_path / "link.py").symlink_to(tmp_path / "in" / "a.py")
    result, editor = await scan(tmp_path)
    assert result == {"files": 2, "findings": 2}
    assert shown(editor) == {"a.py", "link.py"}


async def test_what_settings_leave_out_is_not_walked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradguard]\nexclude = ["made/"]\n')
    for name in ("made", "node_modules", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(FIND)
        (tmp_path / name / "b.py").symlink_to("b.py")
    result, _ = await scan(tmp_path)
    assert result == {"files": 2, "findings": 1, "unread": 1}


async def test_a_file_that_changes_is_looked_at_again_and_one_that_goes_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    editor = Inside()
    await editor.initialize(rootUri=tmp_path.as_uri())
    command = {"command": "gradguard.server.checkWorkspace", "arguments": []}
    await editor.request("workspace/executeCommand", command)

    async def change(kind: int, wanted: set[str]) -> None:
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": kind}]})
        while shown(editor) != wanted:
            await editor.quiet()

    file.write_text(FIND)
    await change(2, {"a.py"})
    file.unlink()
    await change(3, set())
    file.write_text(FIND)
    await change(1, {"a.py"})
    file.unlink()
    os.mkfifo(file)
    await change(2, set())
    editor.server.session.stop()
    editor.server.scanner.stop()
