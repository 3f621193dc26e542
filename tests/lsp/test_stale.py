"""While a piece does not parse, what is read has other lines than what was typed: every answer is for the typed ones."""

from __future__ import annotations

import pathlib

import pytest
from lsprotocol import types as lsp

from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor
from tests.lsp.test_notebooks import change, open_cells

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = """\
import torch

def first(x):
    boom(x)
    a = 1
    b = 2
    c = 3
    hint(x)
    return a

def second(y):
    boom(y)
"""
LONG = """\
import torch
w = torch.rand(3, requires_grad=True)

def helped(x):
    a = 1
    b = 2
    c = 3
    return x.exp()

def train():
    y = helped(w)
    y += 1
    y.sum().backward()
"""


async def test_findings_of_lines_that_are_gone_do_not_pile_up(editor: Editor) -> None:
    uri = await editor.open(TEXT)
    editor.replace(uri, "    a = 1\n    b = 2\n    c = 3\n", "    a = (\n")
    before = await editor.diagnostics(uri)
    assert [editor.text_of(uri, each.range) for each in before] == ["boom(x)", "hint(x)", "boom(y)"]
    editor.replace(uri, "oom(x)\n    a = (\n    hint", "(")
    found = await editor.diagnostics(uri)
    assert [editor.text_of(uri, each.range) for each in found] == ["boom(y)"]
    editor.replace(uri, "b((x)", "boom(x)\n    a = (\n    hint(x)")
    again = await editor.diagnostics(uri)
    assert [editor.text_of(uri, each.range) for each in again] == ["boom(x)", "hint(x)", "boom(y)"]


async def test_a_finding_that_was_typed_over_is_gone(editor: Editor) -> None:
    uri = await editor.open(TEXT)
    editor.replace(uri, "c = 3", "c = (")
    assert len(await editor.diagnostics(uri)) == 3
    editor.replace(uri, "boom(x)", "safe(x)")
    assert [editor.text_of(uri, each.range) for each in await editor.diagnostics(uri)] == [
        "hint(x)",
        "boom(y)",
    ]


async def test_hovers_and_ignores_are_for_the_typed_lines(editor: Editor) -> None:
    uri = await editor.open(TEXT)
    editor.replace(uri, "    a = 1\n    b = 2\n    c = 3\n", "    a = (\n")
    await editor.diagnostics(uri)
    for text in ("boom(x)", "hint(x)", "boom(y)"):
        assert "GG" in (await editor.hover(uri, text) or "")
    assert not await editor.hover(uri, "a = (")
    assert await editor.actions(uri, "boom(x)") == []
    assert await editor.actions(uri, "a = (") == []
    _, action, *_ = await editor.actions(uri, "boom(y)", ["quickfix"])
    editor.apply((await editor.resolved(action)).edit)
    assert "    boom(y)  # gradguard: ignore[GG101]\n" in editor.texts[uri]
    assert [editor.text_of(uri, each.range) for each in await editor.diagnostics(uri)] == [
        "boom(x)",
        "hint(x)",
    ]


async def test_fixes_hints_and_lenses_are_for_the_typed_lines() -> None:
    configuration = {"": {"gradguard": {"inlayHints": True, "codeLens": True}}}
    started = await editors.start(REAL, configuration=configuration)
    try:
        uri = await started.open(LONG)
        started.replace(uri, "    a = 1\n    b = 2\n    c = 3\n", "    a = (\n")
        (found,) = await started.diagnostics(uri)
        assert started.text_of(uri, found.range) == "y += 1"
        (saved, *_) = found.related_information or ()
        assert started.text_of(uri, saved.location.range) == "x.exp()"
        document = lsp.TextDocumentIdentifier(uri)
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
        lenses = await started.client.text_document_code_lens_async(lsp.CodeLensParams(document))
        assert [started.text_of(uri, each.range) for each in lenses or ()] == ["y.sum().backward()"]
        hints = await started.client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole))
        rows = started.texts[uri].split("\n")
        assert {rows[each.position.line][: each.position.character] for each in hints or ()} <= {"    y", "w"}
        assert "version" in (await started.hover(uri, "y.sum()") or "")
        assert "exp" in (await started.hover(uri, "exp()") or "")
        actions = await started.actions(uri, "y += 1", ["quickfix"])
        started.apply((await started.resolved(actions[0])).edit)
        assert "    y = helped(w)\n    y = y + 1\n    y.sum().backward()\n" in started.texts[uri]
        started.replace(uri, "x.exp()", "x.ex()")
        assert await started.diagnostics(uri) == []
        started.replace(uri, "y = y + 1", "y += 1")
        (left,) = await started.diagnostics(uri)
        texts = [started.text_of(uri, each.location.range) for each in left.related_information or ()]
        assert texts
        assert not any("ex" in each for each in texts)
        assert not started.client.messages
    finally:
        await editors.stop(started)


OTHER = """\
import torch

def helped(x):
    a = 1
    b = 2
    y = x.exp()
    y += 1
    return y
"""
MAIN = """\
import torch
from other import helped
y = helped(torch.rand(3, requires_grad=True))
y.sum().backward()
"""


async def test_what_an_open_file_says_of_one_that_is_typed(real: Editor, tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "main.py").write_text(MAIN)
    other = await real.open(OTHER, (tmp_path / "other.py").as_uri())
    await real.open(MAIN, (tmp_path / "main.py").as_uri())

    def shown() -> list[str]:
        return [real.text_of(other, each.range) for each in real.client.diagnostics[other]]

    await real.until(lambda: shown() == ["y += 1"], "what the two do together")
    real.replace(other, "    a = 1\n    b = 2\n", "    a = (\n")
    await real.diagnostics(other)
    await real.until(lambda: shown() == ["y += 1"], "it where it stands now")
    real.replace(other, "y += 1", "y += 2")
    await real.diagnostics(other)
    await real.until(lambda: shown() == [], "nothing about what was typed over")


async def test_cells_of_a_notebook() -> None:
    def with_notebooks(capabilities: lsp.ClientCapabilities) -> None:
        capabilities.notebook_document = lsp.NotebookDocumentClientCapabilities(
            synchronization=lsp.NotebookDocumentSyncClientCapabilities()
        )

    editor = await editors.start(change=with_notebooks)

    async def edited(cell: str, text: str) -> None:
        editor.texts[cell], editor.versions[cell] = text, editor.versions[cell] + 1
        document = lsp.VersionedTextDocumentIdentifier(version=editor.versions[cell], uri=cell)
        content = lsp.NotebookDocumentCellContentChanges(
            document=document, changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)]
        )
        change(editor, uri, lsp.NotebookDocumentCellChanges(text_content=[content]))
        await editor.diagnostics(cell)

    async def texts() -> list[list[str]]:
        return [
            [editor.text_of(cell, each.range) for each in await editor.diagnostics(cell)] for cell in cells
        ]

    try:
        uri, cells = open_cells(editor, "import torch\nboom(a)", "boom(b)\nx = 1\ny = 2\nhint(b)", "boom(c)")
        assert await texts() == [["boom(a)"], ["boom(b)", "hint(b)"], ["boom(c)"]]
        # Its lines are fewer than those that are read for it.
        await edited(cells[1], "boom(b)\nx = (1\nhint(b)")
        assert await texts() == [["boom(a)"], ["boom(b)", "hint(b)"], ["boom(c)"]]
        assert "GG101" in (await editor.hover(cells[2], "boom") or "")
        await edited(cells[2], "\n\nboom(c")
        assert await texts() == [["boom(a)"], ["boom(b)", "hint(b)"], []]
        await edited(cells[2], "\n\nboom(c)\n")
        assert await texts() == [["boom(a)"], ["boom(b)", "hint(b)"], ["boom(c)"]]
        await edited(cells[1], "boom(b)\nx = '''1\nhint(b)")
        assert await texts() == [["boom(a)"], ["boom(b)", "hint(b)"], ["boom(c)"]]
        await edited(cells[1], "boom(b)\nx = '''1\nhnt(b)")
        assert await texts() == [["boom(a)"], ["boom(b)"], ["boom(c)"]]
    finally:
        await editors.stop(editor)
