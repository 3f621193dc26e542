"""Opening, editing and closing texts, in every odd form they come in."""

from __future__ import annotations

import pytest
from lsprotocol import types as lsp

from tests.lsp.editor import Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_findings_arrive_with_code_place_and_version(editor: Editor) -> None:
    uri = await editor.open("import torch\n\nboom(x)\n")
    (found,) = await editor.diagnostics(uri)
    assert (found.code, found.source, found.severity) == ("GG101", "gradguard", lsp.DiagnosticSeverity.Error)
    assert editor.text_of(uri, found.range) == "boom(x)"
    assert editor.published[-1].version == 1


async def test_related_places_carry_messages(editor: Editor) -> None:
    uri = await editor.open("import torch\nboom(value)\n")
    (found,) = await editor.diagnostics(uri)
    (related,) = found.related_information or ()
    assert related.message == "saved here"
    assert editor.text_of(uri, related.location.range) == "value"


async def test_an_edit_moves_and_removes_findings(editor: Editor) -> None:
    uri = await editor.open("import torch\nboom(x)\n")
    editor.replace(uri, "boom", "\n\nboom")
    (found,) = await editor.diagnostics(uri)
    assert found.range.start.line == 3
    editor.replace(uri, "boom", "calm")
    assert await editor.diagnostics(uri) == []


async def test_closing_takes_findings_back(editor: Editor) -> None:
    uri = await editor.open("import torch\nboom(x)\n")
    editor.close(uri)
    assert not (await editor.publication(uri, None)).diagnostics


async def test_text_without_torch_is_left_alone(editor: Editor) -> None:
    assert await editor.diagnostics(await editor.open("boom(x)\n")) == []


async def test_other_languages_are_left_alone(editor: Editor) -> None:
    uri = await editor.open("import torch\nboom(x)\n", editor.uri("notes.md"), "markdown")
    assert await editor.diagnostics(uri) == []


async def test_untitled_text_is_checked(editor: Editor) -> None:
    uri = await editor.open("import torch\nboom(x)\n", "untitled:Untitled-7")
    assert len(await editor.diagnostics(uri)) == 1
    editor.close(uri)


@pytest.mark.parametrize(
    "text",
    [
        "import torch\r\nx = 'a'\r\nboom(x)\r\n",
        "import torch\rboom(x)\r",
        "import torch\n\tif_ = 1\nboom(x)\n",
        "\ufeffimport torch\nboom(x)\n",
        "\ufeffboom(torch)\n",
        "import torch\n\x0cboom(x)\n",
        "import torch\ns = '\u2028 \x0b \x1c \x85'\nboom(x)\n",
        "import torch\ns = '😋é'; boom('😋', x)\n",
        "import torch\nboom(x)",
        "import torch\n😋 = 1\nboom(x)\n",
    ],
    ids=[
        "crlf",
        "cr",
        "tab",
        "bom",
        "bom-same-line",
        "form-feed",
        "odd-separators",
        "emoji",
        "no-line-end",
        "broken",
    ],
)
async def test_places_are_right_in_odd_text(editor: Editor, text: str) -> None:
    uri = await editor.open(text)
    (found,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, found.range).startswith("boom(")
    # The same again after an edit in front of it, which counts on the server having the same lines.
    editor.replace(uri, "boom", "y = 1; boom")
    (found,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, found.range).startswith("boom(")


async def test_positions_outside_the_text_are_clamped(editor: Editor) -> None:
    uri = await editor.open("import torch\nx")
    far = lsp.Position(99, 99)
    editor.texts[uri] = "import torch\nx\nboom(x)"
    editor.send(uri, [lsp.TextDocumentContentChangePartial(range=lsp.Range(far, far), text="\nboom(x)")])
    (found,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, found.range) == "boom(x)"


async def test_several_changes_in_one_message_apply_in_order(editor: Editor) -> None:
    uri = await editor.open("import torch\n")
    end = lsp.Position(1, 0)
    changes = [
        lsp.TextDocumentContentChangePartial(range=lsp.Range(end, end), text="boom(a)\n"),
        lsp.TextDocumentContentChangePartial(range=lsp.Range(end, end), text="x = 1\n"),
        lsp.TextDocumentContentChangePartial(
            range=lsp.Range(lsp.Position(2, 5), lsp.Position(2, 6)), text="b"
        ),
    ]
    editor.texts[uri] = "import torch\nx = 1\nboom(b)\n"
    editor.send(uri, changes)
    (found,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, found.range) == "boom(b)"
