"""Who is answered first, and that an answer that was overtaken comes again."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\n"
BUSY = "import torch\nslow(0.3)\n"


@pytest_asyncio.fixture(loop_scope="module")
async def editor(tmp_path: pathlib.Path) -> AsyncIterator[Inside]:
    started = Inside()
    await started.initialize(rootUri=tmp_path.as_uri())
    yield started
    started.server.session.stop()


def shown(editor: Inside) -> list[str]:
    """Documents in the order in which something was shown for them."""
    sent = [each["params"] for each in editor.sent if each.get("method") == "textDocument/publishDiagnostics"]
    return [pathlib.PurePath(each["uri"]).name for each in sent]


async def test_what_is_typed_goes_before_what_was_opened(editor: Inside, tmp_path: pathlib.Path) -> None:
    mine = (tmp_path / "mine.py").as_uri()
    editor.open(mine, FIND)
    await editor.diagnostics(mine)
    editor.open((tmp_path / "busy.py").as_uri(), BUSY)
    await asyncio.sleep(0.1)
    for number in range(20):
        editor.open((tmp_path / f"other{number}.py").as_uri(), FIND)
    editor.type(mine, "\n")
    await editor.quiet()
    assert shown(editor)[:2] == ["busy.py", "mine.py"]


async def test_a_document_that_is_asked_about_goes_before_others(
    editor: Inside, tmp_path: pathlib.Path
) -> None:
    editor.open((tmp_path / "busy.py").as_uri(), BUSY)
    await asyncio.sleep(0.1)
    for number in range(20):
        editor.open((tmp_path / f"other{number}.py").as_uri(), FIND)
    asked = {
        "textDocument": {"uri": (tmp_path / "other15.py").as_uri()},
        "position": {"line": 1, "character": 0},
    }
    editor.ask("textDocument/hover", asked)
    await editor.quiet()
    assert shown(editor)[:2] == ["busy.py", "other15.py"]


@pytest.mark.parametrize("gate", ["", "import torch\n"])
@pytest.mark.parametrize("when", ["before it is asked for", "while it is worked out"])
async def test_no_answer_stays_that_rests_on_a_text_of_an_import_which_is_gone(
    editor: Inside, tmp_path: pathlib.Path, gate: str, when: str
) -> None:
    """The import is edited there and back before its own answer for the edit is there."""
    imported, mine, busy = ((tmp_path / name).as_uri() for name in ("one.py", "mine.py", "busy.py"))
    text = gate + "def f(x): return x\n"
    editor.open(imported, text)
    await editor.diagnostics(imported)
    editor.open(mine, "import torch\nboom(one.f)\nslow(0.3)\n")
    await editor.diagnostics(mine)
    if when == "before it is asked for":
        editor.open(busy, BUSY)
        await asyncio.sleep(0.1)
    editor.type(imported, "\n\n")
    editor.type(mine, "# typed\n")
    if when == "while it is worked out":
        await asyncio.sleep(0.15)
    editor.replace(imported, text)
    await editor.quiet()
    program = editor.server.session.programs.of(mine)
    assert program is not None
    assert program.seen == {str(tmp_path / "one.py"): text}
