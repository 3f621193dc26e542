"""Documents that nobody looks at keep their findings and little else, and nobody can tell."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gradguard.ide.analysis import analyse
from gradguard.lsp import session, worker
from gradguard.lsp.recent import Recent
from tests.lsp.inside import Inside

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "import torch\n\ndef f():\n    w = torch.rand(3, requires_grad=True)\n    y = w.exp()\n    y += 1\n    y.sum().backward()\n"


@pytest_asyncio.fixture(loop_scope="module")
async def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Inside]:
    monkeypatch.setattr(session, "AWAKE", 2 * len(TEXT))
    started = Inside(analyser=analyse)
    await started.initialize(rootUri=tmp_path.as_uri())
    yield started
    started.server.session.stop()


async def opened(editor: Inside, folder: Path, count: int, first: int = 0) -> list[str]:
    uris = [(folder / f"m{number}.py").as_uri() for number in range(first, first + count)]
    for uri in uris:
        editor.open(uri, TEXT)
        assert [each["code"] for each in await editor.diagnostics(uri)] == ["GG101"]
    await editor.quiet()
    return uris


def resting(editor: Inside) -> list[str]:
    return [each.key for each in editor.server.session.programs if each.resting]


async def ask(editor: Inside, method: str, uri: str, **more: Any) -> Any:
    document = {"textDocument": {"uri": uri}}
    return (await editor.request(f"textDocument/{method}", {**document, **more}))["result"]


async def test_an_answer_to_a_question_is_that_of_a_document_at_work(editor: Inside, tmp_path: Path) -> None:
    first, second, _, fourth = await opened(editor, tmp_path, 4)
    assert resting(editor) == [first, second]
    place = {"line": 4, "character": 10}
    everywhere = {"start": place, "end": {"line": 7, "character": 0}}
    for uri in (first, fourth):
        hover = await ask(editor, "hover", uri, position=place)
        assert "exp" in hover["contents"]["value"]
    actions = [
        await ask(editor, "codeAction", uri, range=everywhere, context={"diagnostics": []})
        for uri in (second, fourth)
    ]
    titles = [[each["title"] for each in found] for found in actions]
    assert titles[0] == titles[1] != []
    assert second not in resting(editor)
    assert len(resting(editor)) == 2


async def test_an_edit_goes_on_from_what_was_shown(editor: Inside, tmp_path: Path) -> None:
    first, *_ = await opened(editor, tmp_path, 4)
    assert first in resting(editor)
    end = {"line": 7, "character": 0}
    editor.change(first, {"range": {"start": end, "end": end}, "text": "    (\n"})
    assert [each["code"] for each in await editor.diagnostics(first)] == ["GG101"]
    editor.type(first, "\n")
    (found,) = await editor.diagnostics(first)
    assert found["range"]["start"]["line"] in (6, 7)


async def test_many_documents_take_little_memory(editor: Inside, tmp_path: Path) -> None:
    await opened(editor, tmp_path, 10)
    gc.collect()
    before = len(gc.get_objects())
    await opened(editor, tmp_path, 100, 10)
    editor.sent.clear()
    editor.passed.clear()
    gc.collect()
    assert len(gc.get_objects()) - before < 100 * 60


async def test_most_collections_look_only_at_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Collector:
        def __getattr__(self, name: str) -> Any:
            return lambda: done.append(name)

    monkeypatch.setattr(worker, "gc", Collector())
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(worker, "WHOLE", 3)
    thread = worker.Worker(asyncio.get_running_loop())
    for count in range(1, 5):
        thread.submit("job", lambda: None, lambda result: None, lambda error: None)
        while done.count("freeze") < count:
            await asyncio.sleep(0.005)
    thread.stop()
    usual = ["collect", "freeze"]
    assert done == [*usual, *usual, "unfreeze", *usual, *usual]


async def test_the_longest_unused_goes_first() -> None:
    recent = Recent(10)
    assert recent.use("a", 4) == []
    assert recent.use("b", 4) == []
    assert recent.use("a", 4) == []
    assert recent.use("c", 4) == ["b"]
    assert recent.use("d", 100) == ["a", "c"]
    recent.drop("d")
    assert recent.use("e", 10) == []
