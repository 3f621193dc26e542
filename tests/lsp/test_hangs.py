"""A disk that does not answer: what lies on it counts as unreadable, and everything else goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.raw import Raw

FIND = "import torch\nboom(x)\n"


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    started = Raw([sys.executable, "-m", "tests.lsp.hanging_server", str(tmp_path)])
    yield started
    started.end()
    assert tmp_path.name.encode() not in started.stderr, "a look at the disk by a thread that must not wait"


def messages(raw: Raw) -> list[str]:
    """What was shown to the user."""
    assert raw.alive()
    shown = [each for each in raw.kept if each.get("method") == "window/showMessage"]
    return [each["params"]["message"] for each in shown]


def edit(raw: Raw, uri: str, version: int) -> None:
    start = {"line": 0, "character": 0}
    change = {"range": {"start": start, "end": start}, "text": "# typed\n"}
    raw.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
    )


def ends(raw: Raw) -> None:
    """It ends when it is told to."""
    assert raw.request("shutdown")["result"] is None
    raw.notify("exit")
    assert raw.exit_code() == 0


def test_settings(raw: Raw, tmp_path: Path) -> None:
    mine, other = ((tmp_path / name / "a.py").as_uri() for name in ("hangs", "other"))
    raw.initialize(rootUri=tmp_path.as_uri())
    raw.open(FIND, mine)
    raw.open(FIND, other)
    assert len(raw.diagnostics(other)) == 1
    assert len(raw.diagnostics(mine)) == 1
    for uri in (other, mine):
        edit(raw, uri, 2)
        assert len(raw.diagnostics(uri, 2)) == 1
    (message,) = messages(raw)
    assert "pyproject.toml" in message
    ends(raw)


def test_an_imported_module(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text("def f(x): return x\n")
    mine, other = (tmp_path / "mine.py").as_uri(), (tmp_path / "other.py").as_uri()
    raw.initialize(rootUri=tmp_path.as_uri(), capabilities=RELATED)
    raw.open("import torch\nboom(hangs.f)\n", mine)
    raw.open(FIND, other)
    assert [len(each["relatedInformation"]) for each in raw.diagnostics(mine)] == [1]
    for version in (2, 3):
        for uri in (other, mine):
            edit(raw, uri, version)
            assert len(raw.diagnostics(uri, version)) == 1
    (message,) = messages(raw)
    assert "hangs.py" in message or "hangs/__init__.py" in message
    (tmp_path / "released").touch()
    while [len(each["relatedInformation"]) for each in raw.diagnostics(mine)] != [2]:
        pass
    ends(raw)


def test_many_imported_modules(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "near.py").write_text("def f(x): return x\n")
    mine = (tmp_path / "mine.py").as_uri()
    raw.initialize(rootUri=tmp_path.as_uri(), capabilities=RELATED)
    names = [f"hangs{number}.f" for number in range(100)]
    raw.open("import torch\n" + "".join(f"boom({name})\n" for name in [*names, "near.f"]), mine)
    assert len(raw.diagnostics(mine)) == 101
    edit(raw, mine, 2)
    assert len(raw.diagnostics(mine, 2)) == 101
    assert len(messages(raw)) == 1
    ends(raw)


def test_what_a_run_left(raw: Raw, tmp_path: Path) -> None:
    uri = (tmp_path / "hangs" / "a.py").as_uri()
    raw.initialize(workspaceFolders=[{"uri": (tmp_path / "hangs").as_uri(), "name": "hangs"}])
    raw.open("x = 1\n", uri)
    assert raw.diagnostics(uri) == []
    edit(raw, uri, 2)
    assert raw.diagnostics(uri, 2) == []
    raw.wait(lambda each: "last-run.json" in str(each.get("params", {}).get("message")))
    ends(raw)


def test_files_and_folders_of_a_scan(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "hangs").mkdir()
    for name in ("a.py", "b_hangs.py", "c.py"):
        (tmp_path / name).write_text(FIND)
    mine = (tmp_path / "mine.py").as_uri()
    raw.initialize(rootUri=tmp_path.as_uri())
    raw.open(FIND, mine)
    command = {"command": "gradguard.server.checkWorkspace", "arguments": []}
    raw.send({"jsonrpc": "2.0", "id": "scan", "method": "workspace/executeCommand", "params": command})
    assert len(raw.diagnostics(mine)) == 1
    edit(raw, mine, 2)
    assert len(raw.diagnostics(mine, 2)) == 1
    answer = raw.wait(lambda each: each.get("id") == "scan" and "method" not in each)
    assert answer["result"] == {"files": 3, "findings": 2, "unread": 2}
    ends(raw)


def test_the_end_of_the_client_ends_it_while_something_hangs(raw: Raw, tmp_path: Path) -> None:
    raw.initialize(rootUri=tmp_path.as_uri())
    raw.open(FIND, (tmp_path / "hangs" / "a.py").as_uri())
    assert raw.alive()
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    assert raw.exit_code() == 1


RELATED: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}
