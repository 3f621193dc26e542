"""What people learn from: hovers, hints, lenses and fixes, with the real engine."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest
from lsprotocol import types as lsp

from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = """\
import torch
import torch.nn.functional as F

w = torch.randn(3, requires_grad=True)
a = w.exp()
view = w[0]
a.mul_(2)
a.sum().backward()

total = 0
z = (w * w).sum()
print(z.item())
z.backward()
p = F.relu(w, inplace=False) + view.mean()
"""


async def test_hover_on_a_finding_says_why_what_torch_says_and_the_fix(real: Editor) -> None:
    uri = await real.open(TEXT)
    text = await real.hover(uri, "a.mul_(2)")
    assert text
    first = text.split("\n")[0]
    assert "GG101" in first
    assert len(first) < 200
    assert (
        "one of the variables needed for gradient computation has been modified by an inplace operation"
        in text
    )
    assert "**Fix:** Write `a` out of place" in text
    assert "*Why:*" in text


async def test_hover_on_an_op_names_the_tensors_of_the_line(real: Editor) -> None:
    uri = await real.open(TEXT)
    text = await real.hover(uri, "exp()")
    assert text
    assert "**`w.exp`** saves `a` for backward" in text
    assert "gradient of `w`: `grad * a" in text
    assert "do not write `a` in place" in text
    text = await real.hover(uri, "* w")
    assert text
    assert "`w`" in text
    assert "requires grad" in text
    assert "saves" in (await real.hover(uri, "relu(w") or "")


async def test_hover_explains_that_the_graph_stays_after_item(real: Editor) -> None:
    uri = await real.open(TEXT)
    text = await real.hover(uri, "item()")
    assert text
    assert "the graph of `z` is still there" in text
    text = await real.hover(uri, "backward()\np", 2)
    assert text
    assert "frees what the graph saved" in text


async def test_hover_on_a_variable_tells_its_tape(real: Editor) -> None:
    uri = await real.open(TEXT)
    text = await real.hover(uri, "w = ")
    assert text
    assert "leaf" in text
    assert "requires grad" in text
    text = await real.hover(uri, "a.sum")
    assert text
    assert "kept for backward by `exp` in line 5 at version 0, and written since" in text
    assert "version 1" in text
    text = await real.hover(uri, "a.mul_")
    assert text
    assert "GG101" in text


async def test_hover_on_an_ignore_comment_is_the_rules_page(real: Editor) -> None:
    uri = await real.open(TEXT.replace("a.mul_(2)", "a.mul_(2)  # gradguard: ignore[GG101]"))
    text = await real.hover(uri, "GG101")
    assert text
    assert text.lstrip().startswith("# GG101")


async def test_fix_and_fix_all(real: Editor) -> None:
    uri = await real.open(TEXT + "b = w.tanh()\nb += 1\nb.sum().backward()\n")
    assert [each.code for each in await real.diagnostics(uri)].count("GG101") == 2
    actions = await real.actions(uri, "a.mul_(2)", ["quickfix"])
    assert actions[0].title == "Write `a` out of place"
    assert actions[0].is_preferred
    assert actions[0].diagnostics
    assert actions[0].diagnostics[0].code == "GG101"
    (every,) = await real.actions(uri, "import", ["source.fixAll"])
    assert every.kind == "source.fixAll.gradguard"
    real.apply((await real.resolved(every)).edit)
    assert "a = a.mul(2)\n" in real.texts[uri]
    assert "b = b + 1\n" in real.texts[uri]
    assert "GG101" not in [each.code for each in await real.diagnostics(uri)]


async def test_no_fix_all_while_something_does_not_parse(real: Editor) -> None:
    uri = await real.open(TEXT)
    real.replace(uri, "p = F.relu(w, inplace=False) + view.mean()", "p = F.relu(")
    assert "GG101" in [each.code for each in await real.diagnostics(uri)]
    assert await real.actions(uri, "import", ["source.fixAll"]) == []


async def test_explain_command(real: Editor) -> None:
    uri = await real.open(TEXT)
    position = {"line": 6, "character": 3}
    found = await real.command("gradguard.server.explain", uri, position)
    assert found["title"].startswith("GG101")
    assert await real.command("gradguard.server.explain", "no-such-rule") is None
    assert (await real.command("gradguard.server.explain", "item-in-loop"))["title"].startswith("GG301")


async def test_hints_and_lenses_are_opt_in() -> None:
    async def ask(editor: Editor) -> tuple[list[str], list[str]]:
        uri = await editor.open(TEXT)
        document = lsp.TextDocumentIdentifier(uri)
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
        hints = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole))
        lenses = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document))
        at = [f"{each.position.line + 1} {each.label}" for each in hints or ()]
        return at, [
            f"{each.range.start.line + 1} {each.command.title}" for each in lenses or () if each.command
        ]

    started = await editors.start(REAL)
    try:
        assert await ask(started) == ([], [])
    finally:
        await editors.stop(started)
    configuration = {"": {"gradguard": {"inlayHints": True, "codeLens": True}}}
    started = await editors.start(REAL, configuration=configuration)
    try:
        hints, lenses = await ask(started)
        assert any(each.startswith("5 saved by exp") for each in hints)
        assert any(each.startswith("6 ") and "view of w" in each for each in hints)
        assert any(each.startswith("8 ") and "exp" in each for each in lenses)
    finally:
        await editors.stop(started)


async def test_korean() -> None:
    started = await editors.start(REAL, locale="ko")
    try:
        uri = await started.open(TEXT)
        (found,) = [each for each in await started.diagnostics(uri) if each.code == "GG101"]
        assert any("\uac00" <= char <= "\ud7a3" for char in found.message)
        assert "`a`" in found.message
        text = await started.hover(uri, "exp()")
        assert text
        assert any("\uac00" <= char <= "\ud7a3" for char in text)
    finally:
        await editors.stop(started)


@pytest.mark.parametrize("told", [".gradguard/last-run.json", ".gradguard"])
async def test_what_a_run_saw_is_shown_until_the_file_changes(tmp_path: pathlib.Path, told: str) -> None:
    text = "import torch\nx = torch.ones(3)\n"
    file = tmp_path / "train.py"
    file.write_text(text)
    place = {"file": "train.py", "line": 2, "column": 1, "end_line": 2, "end_column": 6}
    run = {
        "schema": 1,
        "findings": [
            {
                **place, "code": "GG201", "name": "accumulate-with-graph", "severity": "warning", "certainty": "observed",
                "message": "the graph grew by 3 nodes a step", "related": [{**place, "line": 1, "end_line": 1, "message": "here"}],
            },
            {"file": "train.py", "nonsense": True},
        ],
        "files": {"train.py": hashlib.sha256(text.encode()).hexdigest()},
    }  # fmt: skip
    started = await editors.start(REAL, folders=[tmp_path])
    try:
        uri = await started.open(text, file.as_uri())
        assert await started.diagnostics(uri) == []
        (tmp_path / ".gradguard").mkdir()
        seen = tmp_path / ".gradguard" / "last-run.json"
        seen.write_text(json.dumps(run))
        changed = lsp.FileEvent((tmp_path / told).as_uri(), lsp.FileChangeType.Created)
        started.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([changed]))
        await started.until(lambda: started.client.diagnostics[uri], "the observed finding")
        (found,) = started.client.diagnostics[uri]
        assert found.message == "observed: the graph grew by 3 nodes a step"
        started.replace(uri, "ones", "zeros")
        assert await started.diagnostics(uri) == []
        started.replace(uri, "zeros", "ones")
        assert len(await started.diagnostics(uri)) == 1
    finally:
        await editors.stop(started)


async def test_what_a_run_saw_stands_beside_what_is_read_at_the_same_place(tmp_path: pathlib.Path) -> None:
    text = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n"
    file, folder = tmp_path / "train.py", tmp_path / ".gradguard"
    file.write_text(text)
    folder.mkdir()
    started = await editors.start(REAL, folders=[tmp_path])
    try:
        uri = await started.open(text, file.as_uri())
        (read,) = await started.diagnostics(uri)
        place = {"line": 4, "column": 1, "end_line": 4, "end_column": 10}
        seen = {
            "file": "train.py", **place, "code": read.code, "name": "inplace-on-saved-tensor", "severity": "error",
            "message": "written", "related": [],
        }  # fmt: skip
        digest = hashlib.sha256(text.encode()).hexdigest()
        (folder / "last-run.json").write_text(json.dumps({"findings": [seen], "files": {"train.py": digest}}))
        changed = lsp.FileEvent((folder / "last-run.json").as_uri(), lsp.FileChangeType.Created)
        started.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([changed]))
        await started.until(lambda: len(started.client.diagnostics[uri]) > 1, "the observed finding")
        assert sorted(each.message for each in started.client.diagnostics[uri]) == sorted(
            [read.message, "observed: written"]
        )
        assert len({str(each.range) for each in started.client.diagnostics[uri]}) == 1
    finally:
        await editors.stop(started)
