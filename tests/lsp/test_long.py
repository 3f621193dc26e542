"""Texts that are too long are refused in words, and cost little."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.inside import Inside, Steps

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\n"
LONG = FIND + "x = 1\n" * 400_000


@pytest_asyncio.fixture(loop_scope="module")
async def editor(tmp_path: Path) -> AsyncIterator[Inside]:
    started = Inside()
    await started.initialize(rootUri=tmp_path.as_uri())
    yield started
    started.server.session.stop()


def told(editor: Inside) -> list[str]:
    shown = [each["params"]["message"] for each in editor.sent if each.get("method") == "window/showMessage"]
    editor.sent.clear()
    return shown


async def test_a_document_is_told_once_and_checked_once_it_is_shorter(editor: Inside, tmp_path: Path) -> None:
    uri, other = (tmp_path / "long.py").as_uri(), (tmp_path / "other.py").as_uri()
    editor.open(uri, FIND)
    assert len(await editor.diagnostics(uri)) == 1
    editor.replace(uri, LONG)
    await editor.quiet()
    assert editor.server.publisher.known()[uri].items == ()
    (message,) = told(editor)
    assert "long.py" in message
    assert "1,000,000" in message
    editor.type(uri, "\n")
    editor.open(other, FIND)
    assert len(await editor.diagnostics(other)) == 1
    assert (await editor.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 0}}))["result"] is None  # fmt: skip
    assert not told(editor)
    editor.replace(uri, FIND)
    assert len(await editor.diagnostics(uri)) == 1
    editor.replace(uri, LONG)
    await editor.quiet()
    assert len(told(editor)) == 1


async def test_a_text_without_torch_is_nobodys_concern(editor: Inside, tmp_path: Path) -> None:
    uri = (tmp_path / "data.py").as_uri()
    editor.open(uri, "x = 1\n" * 400_000)
    assert await editor.diagnostics(uri) == []
    assert not told(editor)


@pytest.mark.parametrize("where", ["open", "on disk"])
async def test_a_module_is_taken_for_unreadable(
    editor: Inside, tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    if where == "open":
        editor.open((tmp_path / "long.py").as_uri(), LONG)
    else:
        (tmp_path / "long.py").write_text(LONG)
    uri = (tmp_path / "a.py").as_uri()
    editor.open(uri, "import torch\nboom(long.f)\n")
    assert len(await editor.diagnostics(uri)) == 1
    for _ in range(3):
        editor.type(uri, "\n")
        if where == "open":
            editor.type((tmp_path / "long.py").as_uri(), "\n")
        await editor.quiet()
    assert len([each for each in caplog.messages if "longer than" in each and "imported" in each]) == 1


async def test_a_keystroke_in_a_long_text_takes_few_steps(tmp_path: Path) -> None:
    """Of those that Python takes; what it does in one, such as joining the text, takes milliseconds."""
    steps = Steps()
    counts: list[int] = []
    with steps.watched():
        editor = Inside(steps)
        await editor.initialize(rootUri=tmp_path.as_uri())
        for number, text in enumerate((LONG[:10_000], LONG * 8, "é" + "x = 1; " * 1_400_000)):
            uri = (tmp_path / f"m{number}.py").as_uri()
            editor.open(uri, text.replace("torch", "numpy"))
            await editor.diagnostics(uri)

            async def typed(uri: str = uri, size: int = len(text)) -> None:
                at: dict[str, Any] = (
                    {"line": 200_000, "character": 2} if size > 10_000 else {"line": 2, "character": 2}
                )
                editor.change(uri, {"range": {"start": at, "end": at}, "text": "y"})
                await editor.diagnostics(uri)

            await typed()
            with steps.counted():
                await typed()
            counts.append(steps.count)
        editor.server.session.stop()
    assert max(counts) < 100_000, counts


@pytest.mark.parametrize("far", [-1, 2**31, 2**32 - 1, 10**30])
async def test_an_edit_at_a_place_out_of_all_bounds_is_made(editor: Inside, tmp_path: Path, far: int) -> None:
    uri = (tmp_path / "a.py").as_uri()
    editor.open(uri, "x")
    start, end = {"line": 0, "character": 0}, {"line": far, "character": far}
    editor.change(uri, {"range": {"start": start, "end": end}, "text": FIND})
    assert len(await editor.diagnostics(uri)) == 1
    document = editor.server.session.documents.get(uri)
    assert document is not None
    assert document.text == (FIND + "x" if far < 0 else FIND)
