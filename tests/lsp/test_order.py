"""Who is answered first, and that an answer that was overtaken comes again."""

from __future__ import annotations

import asyncio
import pathlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.ide.analysis import Outcome
from gradguard.source.text import Source
from tests.lsp.inside import PATIENCE, Inside
from tests.lsp.toy_server import toy

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\n"


class Held:
    """The toy analyser, which at the end of a file of this name waits until it is let go."""

    def __init__(self) -> None:
        self.name = ""
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(
        self, source: Source, settings: Settings, workspace: Workspace, before: Outcome | None = None
    ) -> Outcome:
        found = toy(source, settings, workspace, before)
        if self.name and source.path.endswith(self.name):
            self.name = ""
            self.began.set()
            assert self.go.wait(PATIENCE)
        return found


@pytest.fixture
def held() -> Held:
    return Held()


@pytest_asyncio.fixture(loop_scope="module")
async def editor(tmp_path: pathlib.Path, held: Held) -> AsyncIterator[Inside]:
    started = Inside(analyser=held)
    await started.initialize(rootUri=tmp_path.as_uri())
    yield started
    held.go.set()
    started.server.session.stop()


async def busy(editor: Inside, held: Held, folder: pathlib.Path) -> None:
    """Have the analysing thread at work at something else."""
    held.name = "busy.py"
    editor.open((folder / "busy.py").as_uri(), FIND)
    await under_way(held)


async def under_way(held: Held) -> None:
    while not held.began.is_set():
        await asyncio.sleep(0.002)


async def wait_for_jobs(editor: Inside, count: int) -> None:
    """Wait until so many analyses wait for their turn."""
    while editor.server.session.worker.waiting < count:
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.1)


def shown(editor: Inside) -> list[str]:
    """Documents in the order in which something was shown for them."""
    sent = [each["params"] for each in editor.sent if each.get("method") == "textDocument/publishDiagnostics"]
    return [pathlib.PurePath(each["uri"]).name for each in sent]


async def test_what_is_typed_goes_before_what_was_opened(
    editor: Inside, held: Held, tmp_path: pathlib.Path
) -> None:
    mine = (tmp_path / "mine.py").as_uri()
    editor.open(mine, FIND)
    await editor.diagnostics(mine)
    await busy(editor, held, tmp_path)
    for number in range(20):
        editor.open((tmp_path / f"other{number}.py").as_uri(), FIND)
    await wait_for_jobs(editor, 20)
    editor.type(mine, "\n")
    held.go.set()
    await editor.quiet()
    assert shown(editor)[:2] == ["busy.py", "mine.py"]


async def test_a_document_that_is_asked_about_goes_before_others(
    editor: Inside, held: Held, tmp_path: pathlib.Path
) -> None:
    await busy(editor, held, tmp_path)
    for number in range(20):
        editor.open((tmp_path / f"other{number}.py").as_uri(), FIND)
    await wait_for_jobs(editor, 20)
    asked: dict[str, Any] = {
        "textDocument": {"uri": (tmp_path / "other15.py").as_uri()},
        "position": {"line": 1, "character": 0},
    }
    editor.ask("textDocument/hover", asked)
    await asyncio.sleep(0.1)
    held.go.set()
    await editor.quiet()
    assert shown(editor)[:2] == ["busy.py", "other15.py"]


@pytest.mark.parametrize("gate", ["", "import torch\n"])
@pytest.mark.parametrize("when", ["before it is asked for", "while it is worked out"])
async def test_no_answer_stays_that_rests_on_a_text_of_an_import_which_is_gone(
    editor: Inside, held: Held, tmp_path: pathlib.Path, gate: str, when: str
) -> None:
    """The import is edited there and back before its own answer for the edit is there."""
    imported, mine = ((tmp_path / name).as_uri() for name in ("one.py", "mine.py"))
    text = gate + "def f(x): return x\n"
    editor.open(imported, text)
    await editor.diagnostics(imported)
    editor.open(mine, "import torch\nboom(one.f)\n")
    await editor.diagnostics(mine)
    if when == "before it is asked for":
        await busy(editor, held, tmp_path)
    else:
        held.name = "mine.py"
    editor.type(imported, "\n\n")
    editor.type(mine, "# typed\n")
    await under_way(held)
    editor.replace(imported, text)
    held.go.set()
    await editor.quiet()
    program = editor.server.session.programs.of(mine)
    assert program is not None
    assert program.seen == {str(tmp_path / "one.py"): text}
