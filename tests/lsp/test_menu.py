"""The quick fix menu of a finding: what repairs it comes first, ignoring last, and where nothing repairs it the page explains."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from tests.fixes.test_fixtures import ROOT
from tests.lsp import editor as editors
from tests.lsp.editor import TOY, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

GAN = (ROOT / "detach-kept" / "fake_batch.py").read_text("utf-8")
TRAINING = """import torch
import torch.nn as nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total, losses, numbers = 0, [], []
for _ in range(8):
    loss = net(torch.rand(2, 3)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    losses.append(loss)
    numbers.append(loss.item())
"""
COMPILED = """import torch
import torch.nn as nn

net = nn.Linear(3, 1)

@torch.compile
def scaled(x):
    y = net(x).sum()
    return x * y.item()

scaled(torch.rand(2, 3))
"""

REPAIRS = [
    (GAN, "loss_g.backward()", "Detach `fake` where this loss uses it (may change numbers)"),
    (TRAINING, "total += loss", "Accumulate a detached value"),
    (TRAINING, "losses.append(loss)", "Store a detached value"),
    (
        TRAINING.replace("net = nn.Linear(3, 1)", 'net = nn.Linear(3, 1).to("cuda")'),
        "numbers.append(loss.item())",
        "Accumulate on the device, read once after the loop (may change numbers)",
    ),
]


@pytest.mark.parametrize(("text", "place", "title"), REPAIRS, ids=["fake batch", "total", "list", "number"])
async def test_the_likeliest_repair_comes_first(real: Editor, text: str, place: str, title: str) -> None:
    uri = await real.open(text)
    actions = await real.actions(uri, place, ["quickfix"])
    assert actions[0].title == title
    assert [each.is_preferred for each in actions].count(True) == 1
    assert actions[0].is_preferred
    assert all(each.title.startswith("Ignore") for each in actions[-2:])
    edit = (await real.resolved(actions[0])).edit
    assert edit is not None
    code = actions[0].diagnostics[0].code if actions[0].diagnostics else None
    real.apply(edit)
    assert code not in [each.code for each in await real.diagnostics(uri)]


async def test_ignoring_is_last_of_all(real: Editor) -> None:
    uri = await real.open(TRAINING)
    titles = [each.title for each in await real.actions(uri, "total += loss")]
    assert [title.startswith("Ignore") for title in titles] == [False] * (len(titles) - 2) + [True] * 2


async def test_where_nothing_repairs_it_the_page_explains(real: Editor) -> None:
    uri = await real.open(COMPILED)
    first, *others = await real.actions(uri, "y.item()", ["quickfix"])
    assert first.title == "Explain how to repair GG303 (item-in-compiled-code)"
    assert len(others) == 2
    # lsprotocol reads an action that has a command as a command, with the real one as a text in it.
    command = ast.literal_eval(str(getattr(first, "command", "")))
    told = len(real.client.messages)
    answer = await real.command(command["command"], *command["arguments"])
    assert answer["code"] == "GG303"
    assert answer["page"].endswith("item_in_compiled_code.md")
    shown = [each.uri for each in real.client.shown_documents] + [
        each.message for each in real.client.messages[told:]
    ]
    assert any("item_in_compiled_code.md" in each for each in shown)


def creates(capabilities: lsp.ClientCapabilities) -> None:
    assert capabilities.workspace is not None
    assert capabilities.workspace.workspace_edit is not None
    capabilities.workspace.workspace_edit.resource_operations = [lsp.ResourceOperationKind.Create]


async def test_a_rule_is_turned_off_and_a_reason_selected(tmp_path: Path) -> None:
    started = await editors.start(
        TOY, folders=[tmp_path], change=creates, initialization_options={"status": True}
    )
    try:
        uri = await started.open("import torch\nboom(x)\n", (tmp_path / "a.py").as_uri())
        actions = await started.actions(uri, "boom", ["quickfix"])
        titles = [getattr(each, "title", "") for each in actions]
        assert titles[1:] == [
            "Show all findings of GG101",
            "Turn GG101 off in pyproject.toml",
            "Ignore GG101 on this line",
            "Ignore GG101 on this line, with a reason",
        ]
        edit = (await started.resolved(actions[2])).edit
        assert edit is not None
        made, change = edit.document_changes or ()
        assert isinstance(made, lsp.CreateFile)
        assert isinstance(change, lsp.TextDocumentEdit)
        assert change.text_document.uri == (tmp_path / "pyproject.toml").as_uri()
        (one,) = change.edits
        assert getattr(one, "new_text", "") == '[tool.gradguard.rules]\ninplace-on-saved-tensor = "off"\n'
        (tmp_path / "pyproject.toml").write_text("[tool.gradguard.rules]\n")
        again = (await started.resolved(actions[2])).edit
        assert again is not None
        (change,) = again.document_changes or ()
        assert isinstance(change, lsp.TextDocumentEdit)
        command = (await started.resolved(actions[4])).command
        assert command is not None
        where, line, start, end = command.arguments or ()
        started.apply((await started.resolved(actions[4])).edit or lsp.WorkspaceEdit())
        assert where == uri
        assert started.texts[uri].split("\n")[line][start:end] == "reason"
    finally:
        await editors.stop(started)


async def test_a_hover_says_the_sentence_once_where_the_editor_shows_it_above() -> None:
    said = []
    for options in ({}, {"status": True}):
        started = await editors.start(TOY, initialization_options=options)
        try:
            uri = await started.open("import torch\nboom(x)\n")
            (found,) = await started.diagnostics(uri)
            text = await started.hover(uri, "boom") or ""
            assert "**GG101**" in text
            said.append(found.message in text)
        finally:
            await editors.stop(started)
    assert said == [True, False]
