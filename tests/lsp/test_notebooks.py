"""Notebooks: cells are one program, findings and edits stay in their cell."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from lsprotocol import types as lsp

from tests.lsp import editor as editors
from tests.lsp.editor import Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[Editor]:
    def change(capabilities: lsp.ClientCapabilities) -> None:
        capabilities.notebook_document = lsp.NotebookDocumentClientCapabilities(
            synchronization=lsp.NotebookDocumentSyncClientCapabilities()
        )

    started = await editors.start(change=change)
    yield started
    await editors.stop(started)


def open_cells(editor: Editor, *texts: str) -> tuple[str, list[str]]:
    """Open a notebook with these cells; a text that starts with `#md` is markup."""
    number = next(_numbers)
    uri = f"file:///nowhere/{number}.ipynb"
    cells = [f"vscode-notebook-cell:/nowhere/{number}.ipynb#c{index}" for index in range(len(texts))]
    kinds = [
        lsp.NotebookCellKind.Markup if text.startswith("#md") else lsp.NotebookCellKind.Code for text in texts
    ]
    code = [
        (cell, text) for cell, text, kind in zip(cells, texts, kinds) if kind is lsp.NotebookCellKind.Code
    ]
    for cell, text in code:
        editor.texts[cell], editor.versions[cell] = text, 1
    editor.client.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            notebook_document=lsp.NotebookDocument(
                uri=uri,
                notebook_type="jupyter-notebook",
                version=1,
                cells=[lsp.NotebookCell(kind=kind, document=cell) for kind, cell in zip(kinds, cells)],
            ),
            cell_text_documents=[lsp.TextDocumentItem(cell, "python", 1, text) for cell, text in code],
        )
    )
    return uri, cells


def change(editor: Editor, uri: str, cells: lsp.NotebookDocumentCellChanges) -> None:
    editor.client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(
            notebook_document=lsp.VersionedNotebookDocumentIdentifier(version=2, uri=uri),
            change=lsp.NotebookDocumentChangeEvent(cells=cells),
        )
    )


async def test_notebooks_are_offered_to_clients_that_have_them(editor: Editor) -> None:
    assert editor.initialized.capabilities.notebook_document_sync is not None


async def test_cells_are_one_program_and_findings_stay_in_theirs(editor: Editor) -> None:
    _, cells = open_cells(
        editor, "%matplotlib inline\nimport torch", "#md text", "!ls\nx = 1\nboom(x)", "boom(x)\n"
    )
    assert await editor.diagnostics(cells[0]) == []
    (found,) = await editor.diagnostics(cells[2])
    assert editor.text_of(cells[2], found.range) == "boom(x)"
    assert found.range.start.line == 2
    (related,) = found.related_information or ()
    assert related.location.uri == cells[2]
    (found,) = await editor.diagnostics(cells[3])
    assert found.range.start.line == 0
    assert "GG101" in (await editor.hover(cells[3], "boom") or "")


async def test_an_open_bracket_in_one_cell_spares_the_next(editor: Editor) -> None:
    _, cells = open_cells(editor, "import torch\nboom(a)", "y = foo(", "boom(b)")
    assert len(await editor.diagnostics(cells[0])) == 1
    assert await editor.diagnostics(cells[1]) == []
    assert len(await editor.diagnostics(cells[2])) == 1


async def test_edits_of_actions_stay_in_their_cell(editor: Editor) -> None:
    _, cells = open_cells(editor, "import torch", "x = 1\nboom(x)", "boom(x)")
    await editor.diagnostics(cells[1])
    _, action, _ = await editor.actions(cells[1], "boom", ["quickfix"])
    edit = (await editor.resolved(action)).edit
    assert edit
    assert edit.document_changes
    (one,) = edit.document_changes
    assert isinstance(one, lsp.TextDocumentEdit)
    assert one.text_document.uri == cells[1]
    assert [(each.range.start.line, each.new_text) for each in one.edits] == [
        (1, "  # gradguard: ignore[GG101]")
    ]


async def test_cells_can_be_edited_added_and_removed(editor: Editor) -> None:
    uri, cells = open_cells(editor, "import torch\nboom(x)", "#md", "boom(x)")
    await editor.diagnostics(cells[2])
    # Edit the text of one.
    editor.texts[cells[2]], editor.versions[cells[2]] = "\nboom(x)", 2
    start = lsp.Position(0, 0)
    text = lsp.NotebookDocumentCellContentChanges(
        document=lsp.VersionedTextDocumentIdentifier(version=2, uri=cells[2]),
        changes=[lsp.TextDocumentContentChangePartial(range=lsp.Range(start, start), text="\n")],
    )
    change(editor, uri, lsp.NotebookDocumentCellChanges(text_content=[text]))
    (found,) = await editor.diagnostics(cells[2])
    assert found.range.start.line == 1
    # Add one behind the markup cell.
    new = cells[0] + "new"
    editor.versions[new], editor.texts[new] = 1, "boom(new)"
    structure = lsp.NotebookDocumentCellChangeStructure(
        array=lsp.NotebookCellArrayChange(
            start=2, delete_count=0, cells=[lsp.NotebookCell(kind=lsp.NotebookCellKind.Code, document=new)]
        ),
        did_open=[lsp.TextDocumentItem(new, "python", 1, "boom(new)")],
    )
    change(editor, uri, lsp.NotebookDocumentCellChanges(structure=structure))
    assert len(await editor.diagnostics(new)) == 1
    # Remove the first: its findings go with it, and without `import torch` nothing is said any more.
    structure = lsp.NotebookDocumentCellChangeStructure(
        array=lsp.NotebookCellArrayChange(start=0, delete_count=1),
        did_close=[lsp.TextDocumentIdentifier(uri=cells[0])],
    )
    change(editor, uri, lsp.NotebookDocumentCellChanges(structure=structure))
    await editor.until(lambda: not editor.client.diagnostics[new], "the finding to go")
    await editor.until(lambda: not editor.client.diagnostics[cells[0]], "those of the removed cell to go")


async def test_closing_a_notebook_takes_its_findings_back(editor: Editor) -> None:
    uri, cells = open_cells(editor, "import torch\nboom(x)")
    assert len(await editor.diagnostics(cells[0])) == 1
    editor.client.notebook_document_did_close(
        lsp.DidCloseNotebookDocumentParams(
            notebook_document=lsp.NotebookDocumentIdentifier(uri=uri),
            cell_text_documents=[lsp.TextDocumentIdentifier(uri=cells[0])],
        )
    )
    assert not (await editor.publication(cells[0], None)).diagnostics


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Editor]:
    """A client with notebooks and the real engine."""

    def change(capabilities: lsp.ClientCapabilities) -> None:
        capabilities.notebook_document = lsp.NotebookDocumentClientCapabilities(
            synchronization=lsp.NotebookDocumentSyncClientCapabilities()
        )

    started = await editors.start(editors.REAL, change=change)
    yield started
    await editors.stop(started)


async def fix_everything(editor: Editor, uri: str) -> tuple[list[str], dict[str, object]]:
    """Apply what one command gives as one edit; the documents that it changes, and what it says of itself."""
    params = lsp.ExecuteCommandParams(command="gradguard.server.fixAll", arguments=[uri])
    found = await editor.client.workspace_execute_command_async(params)
    edit = found["edit"]
    changed = []
    for each in edit["documentChanges"] if edit else ():
        document = each["textDocument"]["uri"]
        assert each["textDocument"]["version"] == editor.versions[document]
        edits = [
            lsp.TextEdit(
                lsp.Range(lsp.Position(**one["range"]["start"]), lsp.Position(**one["range"]["end"])),
                one["newText"],
            )
            for one in each["edits"]
        ]
        editor.apply(lsp.WorkspaceEdit(changes={document: edits}))
        changed.append(document)
    return changed, {key: found[key] for key in ("fixed", "documents", "left")}


async def test_fixing_everything_is_one_edit_of_all_cells(real: Editor) -> None:
    _, cells = open_cells(
        real,
        "import torch\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\nz = w.exp()",
        "%matplotlib inline\ny.mul_(2)",
        "#md y.mul_(2)",
        "(y.sum() + z.sum()).backward()\nz.tanh_()",
        "v = w.sigmoid()\n!ls\nv += 1\nv.sum().backward()\nloss = v.sum()\nloss.backward()",
    )
    await real.diagnostics(cells[4])
    changed, said = await fix_everything(real, cells[0])
    assert changed == [cells[1], cells[4]]
    assert real.texts[cells[1]] == "%matplotlib inline\ny = y.mul(2)"
    assert real.texts[cells[4]].startswith("v = w.sigmoid()\n!ls\nv = v + 1\n")
    assert said == {"fixed": 2, "documents": 2, "left": 1}
    assert [each.code for each in await real.diagnostics(cells[4])] == ["GG203"]
    assert await fix_everything(real, cells[0]) == ([], {"fixed": 0, "documents": 0, "left": 1})


async def test_a_fix_that_would_cost_a_magic_is_not_made(real: Editor) -> None:
    text = "import torch\nw = torch.nn.Linear(2, 1)\nfor x in torch.rand(3, 4, 2):\n    out = w(x)\n    %time out\n    print(out.shape)"
    _, cells = open_cells(real, text)
    found = await real.diagnostics(cells[0])
    for action in await real.actions(cells[0], "out = w(x)") if found else ():
        edit = (await real.resolved(action)).edit
        for change in edit.document_changes or () if edit else ():
            assert isinstance(change, lsp.TextDocumentEdit)
            for each in change.edits:
                assert "pass" not in getattr(each, "new_text", "")
