"""Hover, code actions, pull diagnostics, settings, folders: what clients ask and tell."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.lsp import editor as editors
from tests.lsp.editor import TOY, Editor

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIND = "import torch\nboom(x)\n"
EXPLAIN = "Explain how to repair GG101 (inplace-on-saved-tensor)"


@contextlib.asynccontextmanager
async def session(*args: Any, **kwargs: Any) -> AsyncIterator[Editor]:
    """A server of its own for one test."""
    started = await editors.start(*args, **kwargs)
    try:
        yield started
    finally:
        await editors.stop(started)


def pulls(capabilities: lsp.ClientCapabilities) -> None:
    """A client that asks for diagnostics itself and can be told to."""
    assert capabilities.text_document is not None
    assert capabilities.workspace is not None
    capabilities.text_document.diagnostic = lsp.DiagnosticClientCapabilities(related_document_support=True)
    capabilities.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)


async def pull(editor: Editor, uri: str, previous: str | None = None) -> Any:
    """One pull."""
    params = lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri), previous_result_id=previous)
    return await editor.client.text_document_diagnostic_async(params)


# Capabilities


async def test_capabilities_of_a_push_client(editor: Editor) -> None:
    can = editor.initialized.capabilities
    assert can.diagnostic_provider is None
    assert isinstance(can.text_document_sync, lsp.TextDocumentSyncOptions)
    assert can.text_document_sync.change == lsp.TextDocumentSyncKind.Incremental
    assert isinstance(can.code_action_provider, lsp.CodeActionOptions)
    assert can.code_action_provider.resolve_provider
    assert "source.fixAll.gradguard" in (can.code_action_provider.code_action_kinds or ())


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["utf-8", "utf-16"], "utf-8"), (["utf-16"], "utf-16"), (["utf-32"], "utf-32"), (None, "utf-16")],
)
async def test_position_encodings(offered: list[str] | None, chosen: str) -> None:
    def change(capabilities: lsp.ClientCapabilities) -> None:
        capabilities.general = lsp.GeneralClientCapabilities(position_encodings=offered)

    async with session(change=change) as editor:
        assert editor.encoding == chosen
        uri = await editor.open("import torch\ns = '😋é'; boom('😋', x)\n")
        (found,) = await editor.diagnostics(uri)
        assert editor.text_of(uri, found.range) == "boom('😋', x)"
        editor.replace(uri, "é", "é😋é")
        (found,) = await editor.diagnostics(uri)
        assert editor.text_of(uri, found.range) == "boom('😋', x)"
        assert "GG101" in (await editor.hover(uri, "boom") or "")


# Pull


async def test_pull_with_result_ids() -> None:
    async with session(change=pulls) as editor:
        assert editor.initialized.capabilities.diagnostic_provider is not None
        uri = await editor.open(FIND, wait=False)
        first = await pull(editor, uri)
        assert (first.kind, len(first.items)) == ("full", 1)
        assert (await pull(editor, uri, first.result_id)).kind == "unchanged"
        editor.replace(uri, "boom", "calm")
        second = await pull(editor, uri, first.result_id)
        assert (second.kind, list(second.items)) == ("full", [])
        assert not editor.published


async def test_push_can_be_asked_for_by_a_client_that_pulls() -> None:
    async with session(change=pulls, initialization_options={"diagnostics": "push"}) as editor:
        assert editor.initialized.capabilities.diagnostic_provider is None
        uri = await editor.open(FIND)
        assert len(await editor.diagnostics(uri)) == 1


async def test_a_pull_during_analysis_waits_for_the_newest_text() -> None:
    async with session(change=pulls) as editor:
        uri = await editor.open("import torch\nslow(0.3)\nboom(x)\n", wait=False)
        waiting = asyncio.ensure_future(pull(editor, uri))
        await asyncio.sleep(0.1)
        editor.replace(uri, "boom(x)", "boom(x); boom(y)")
        assert len((await waiting).items) == 2


# Code actions


async def test_ignore_action_lazily(editor: Editor) -> None:
    uri = await editor.open(FIND)
    _, action, _ = await editor.actions(uri, "boom", ["quickfix"])
    assert (action.title, action.edit) == ("Ignore GG101 on this line", None)
    editor.apply((await editor.resolved(action)).edit)
    assert editor.texts[uri] == "import torch\nboom(x)  # gradguard: ignore[GG101]\n"
    assert await editor.diagnostics(uri) == []


async def test_ignore_action_with_a_reason(editor: Editor) -> None:
    uri = await editor.open(FIND)
    *_, action = await editor.actions(uri, "boom", ["quickfix"])
    assert (action.title, action.edit) == ("Ignore GG101 on this line, with a reason", None)
    editor.apply((await editor.resolved(action)).edit)
    assert editor.texts[uri] == "import torch\nboom(x)  # gradguard: ignore[GG101] reason\n"
    assert await editor.diagnostics(uri) == []


async def test_actions_are_refused_when_the_text_moved_on(editor: Editor) -> None:
    uri = await editor.open(FIND)
    _, action, _ = await editor.actions(uri, "boom", ["quickfix"])
    editor.replace(uri, "import", "\nimport")
    with pytest.raises(JsonRpcException) as refused:
        await editor.resolved(action)
    assert refused.value.code == -32801


@pytest.mark.parametrize("profile", ["emacs", "neovim@v0.7", "neovim@v0.11"])
async def test_edits_come_at_once_where_the_client_cannot_resolve(profile: str) -> None:
    async with session(profile=profile, initialization_options={"diagnostics": "push"}) as editor:
        uri = await editor.open("import torch\r\ns = '😋'; boom(x)\r\n")
        actions = await editor.actions(uri, "boom")
        ignore = "Ignore GG101 on this line"
        assert [each.title for each in actions] == [EXPLAIN, ignore, f"{ignore}, with a reason"]
        action = await editor.resolved(actions[1])
        assert action.edit
        editor.apply(action.edit)
        assert editor.texts[uri] == "import torch\r\ns = '😋'; boom(x)  # gradguard: ignore[GG101]\r\n"


async def test_actions_come_from_own_findings_not_from_what_the_client_says(editor: Editor) -> None:
    uri = await editor.open("import torch\ncalm(x)\nboom(x)\n")
    (found,) = await editor.diagnostics(uri)
    lie = lsp.Diagnostic(range=editor.range(uri, "calm"), message="?", code="GG101", source="gradguard")
    params = lsp.CodeActionParams(
        lsp.TextDocumentIdentifier(uri), editor.range(uri, "calm"), lsp.CodeActionContext(diagnostics=[lie])
    )
    assert not await editor.client.text_document_code_action_async(params)
    params.range = lsp.Range(found.range.start, found.range.start)
    *_, action = await editor.client.text_document_code_action_async(params) or ()
    assert action.diagnostics
    assert action.diagnostics[0].range == found.range


async def test_only_is_honoured(editor: Editor) -> None:
    uri = await editor.open(FIND)
    assert await editor.actions(uri, "boom", ["source.organizeImports"]) == []
    assert await editor.actions(uri, "boom", ["refactor"]) == []
    assert len(await editor.actions(uri, "boom", ["quickfix"])) == 3


# While a piece does not parse


async def test_findings_of_a_broken_piece_stay_and_move(editor: Editor) -> None:
    uri = await editor.open("import torch\n\ndef f(x):\n    boom(x)\n    y = 1\n\ndef g(x):\n    boom(x)\n")
    editor.replace(uri, "    y = 1", "    y = foo(1")
    broken = await editor.diagnostics(uri)
    assert [each.range.start.line for each in broken] == [3, 7]
    editor.replace(uri, "    boom(x)\n    y", "    # one more line\n    boom(x)\n    hint(y)\n    y")
    moved = await editor.diagnostics(uri)
    assert [(each.code, each.range.start.line) for each in moved] == [("GG101", 4), ("GG101", 9)]
    assert await editor.actions(uri, "boom(x)\n    hint", ["source.fixAll"]) == []
    editor.replace(uri, "foo(1", "foo(1)")
    whole = await editor.diagnostics(uri)
    assert [(each.code, each.range.start.line) for each in whole] == [
        ("GG101", 4),
        ("GG301", 5),
        ("GG101", 9),
    ]


async def test_a_kept_finding_goes_with_its_text(editor: Editor) -> None:
    uri = await editor.open("import torch\ndef f(x):\n    boom(x)\n    y = 1\n")
    editor.replace(uri, "    y = 1", "    y = (")
    assert len(await editor.diagnostics(uri)) == 1
    editor.replace(uri, "    boom(x)\n", "")
    assert await editor.diagnostics(uri) == []


# Flooding and faults


async def test_a_flood_of_edits_ends_with_the_answer_for_the_last(editor: Editor) -> None:
    uri = await editor.open("import torch\n")
    for number in range(500):
        editor.edit(uri, len(editor.texts[uri]), len(editor.texts[uri]), f"boom(x{number})\n")
    assert len(await editor.diagnostics(uri)) == 500
    published = [each.version for each in editor.published if each.uri == uri]
    assert published == sorted(published)
    assert len(published) < 400, "nearly every version was analysed, none was skipped"


async def test_published_versions_match_their_text(editor: Editor) -> None:
    uri = await editor.open("import torch\n")
    for number in range(60):
        editor.edit(uri, len(editor.texts[uri]), len(editor.texts[uri]), "boom(x)\n")
        await asyncio.sleep(0.002 * (number % 3))
    await editor.diagnostics(uri)
    for each in editor.published:
        if each.uri == uri:
            assert len(each.diagnostics) == (each.version or 0) - 1


async def test_a_crash_is_told_once_and_the_next_keystroke_works() -> None:
    async with session() as editor:
        uri = await editor.open("import torch\ncrash()\n")
        assert await editor.diagnostics(uri) == []
        editor.replace(uri, "crash()", "crash(); boom(x)")
        await editor.diagnostics(uri)
        editor.replace(uri, "crash()", "calm()")
        assert len(await editor.diagnostics(uri)) == 1
        (message,) = editor.client.messages
        assert "log" in message.message
        assert message.type == lsp.MessageType.Error
        assert any("asked to crash" in each.message for each in editor.client.log_messages)


async def test_a_slow_analysis_does_not_hold_up_other_requests(editor: Editor) -> None:
    await editor.open("import torch\nslow(1.5)\n", wait=False)
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert (await editor.command("gradguard.server.info"))["version"]
    assert loop.time() - start < 1.0


async def test_cancelled_requests_are_answered_as_cancelled(editor: Editor) -> None:
    uri = await editor.open("import torch\nslow(1)\nboom(x)\n", wait=False)
    params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(2, 1))
    request = asyncio.ensure_future(
        editor.client.protocol.send_request_async(lsp.TEXT_DOCUMENT_HOVER, params, msg_id="cancel-me")
    )
    await asyncio.sleep(0.2)
    editor.client.cancel_request(lsp.CancelParams(id="cancel-me"))
    with pytest.raises(JsonRpcException) as cancelled:
        await request
    assert cancelled.value.code == -32800


# Settings


async def test_settings_of_the_editor_change_without_restart() -> None:
    async with session(configuration={"": {"gradguard": {}}}) as editor:
        uri = await editor.open(FIND)
        assert len(await editor.diagnostics(uri)) == 1
        editor.client.set_configuration({"gradguard": {"ignore": ["GG101"], "noSuchKey": 1}})
        editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        await editor.until(lambda: not editor.published[-1].diagnostics, "the finding to go")
        assert any("noSuchKey" in each.message for each in editor.client.log_messages)


async def test_each_folder_has_its_settings_and_pyproject_wins(tmp_path: pathlib.Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    inner = one / "inner"
    for folder in (one, two, inner):
        folder.mkdir()
    (two / "pyproject.toml").write_text('[tool.gradguard.rules]\nGG101 = "warning"\n')
    (inner / "pyproject.toml").write_text('[tool.gradguard]\nignore = ["GG101"]\n')
    configuration = {"": {"gradguard": {}}, one.as_uri(): {"gradguard": {"rules": {"GG101": "hint"}}}}
    async with session(folders=[one, two], configuration=configuration) as editor:
        places = {"one": one / "a.py", "two": two / "a.py", "inner": inner / "a.py"}
        uris = {name: await editor.open(FIND, path.as_uri()) for name, path in places.items()}
        await editor.until(
            lambda: (
                [each.severity for each in editor.client.diagnostics.get(uris["one"], ())]
                == [lsp.DiagnosticSeverity.Hint]
            ),
            "the folder's level",
        )
        assert [each.severity for each in editor.client.diagnostics[uris["two"]]] == [
            lsp.DiagnosticSeverity.Warning
        ]
        assert not editor.client.diagnostics[uris["inner"]]
        # The file on disk changes, the client says so, and the findings follow.
        (inner / "pyproject.toml").write_text("[tool.gradguard]\nignore = []\nnonsense = 1\n")
        editor.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams(
                changes=[lsp.FileEvent((inner / "pyproject.toml").as_uri(), lsp.FileChangeType.Changed)]
            )
        )
        await editor.until(lambda: editor.client.diagnostics[uris["inner"]], "the finding to come")
        assert any("nonsense" in each.message for each in editor.client.log_messages)
        text = await editor.command("gradguard.server.debugInformation", uris["two"])
        assert str(two / "pyproject.toml") in text
        text = await editor.command("gradguard.showDebugInformation", uris["one"])
        assert "(editor)" in text


async def test_on_save_shows_nothing_new_until_saved() -> None:
    async with session(configuration={"": {"gradguard": {"run": "onSave"}}}) as editor:
        uri = await editor.open(FIND)
        assert len(await editor.diagnostics(uri)) == 1
        editor.replace(uri, "boom", "calm")
        assert await editor.hover(uri, "calm") is None
        assert 2 not in [each.version for each in editor.published]
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
        assert await editor.diagnostics(uri) == []


async def test_excluded_files_and_disabled_folders_are_silent(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradguard]\nexclude = ["made/"]\n')
    async with session(folders=[tmp_path]) as editor:
        assert await editor.diagnostics(await editor.open(FIND, (tmp_path / "made" / "a.py").as_uri())) == []
        assert len(await editor.diagnostics(await editor.open(FIND, (tmp_path / "b.py").as_uri()))) == 1


# Several files


async def test_findings_follow_edits_to_another_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.py").write_text("import torch\ndef f(x): pass\n")
    async with session(folders=[tmp_path]) as editor:
        uri = await editor.open("import torch, other\nboom(other.f)\n", (tmp_path / "main.py").as_uri())
        (found,) = await editor.diagnostics(uri)
        related = [each.message for each in found.related_information or ()]
        assert related == ["saved here", "f is here"]

        def places() -> list[int]:
            (found,) = editor.client.diagnostics[uri]
            return [each.location.range.start.line for each in found.related_information or ()][1:]

        assert places() == [1]
        # An unsaved buffer counts more than the disk.
        other = await editor.open("import torch\n\n\ndef f(x): pass\n", (tmp_path / "other.py").as_uri())
        await editor.until(lambda: places() == [3], "the place in the buffer")
        editor.replace(other, "\n\n\n", "\n\n\n\n\n")
        await editor.until(lambda: places() == [5], "the place after the edit")
        editor.close(other)
        await editor.until(lambda: places() == [1], "the place on disk")
        (tmp_path / "other.py").write_text("import torch\n\ndef f(x): pass\n")
        editor.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams(
                [lsp.FileEvent((tmp_path / "other.py").as_uri(), lsp.FileChangeType.Changed)]
            )
        )
        await editor.until(lambda: places() == [2], "the place after the change on disk")
        (tmp_path / "other.py").unlink()
        editor.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams(
                [lsp.FileEvent((tmp_path / "other.py").as_uri(), lsp.FileChangeType.Deleted)]
            )
        )
        await editor.until(lambda: places() == [], "the place to go with its file")


async def test_a_whole_workspace_on_request_with_progress(tmp_path: pathlib.Path) -> None:
    for number in range(30):
        (tmp_path / f"m{number:02}.py").write_text(
            "import torch\nboom(x)\n" if number % 3 == 0 else "x = 1\n"
        )
    async with session(folders=[tmp_path]) as editor:
        result = await editor.command("gradguard.server.checkWorkspace")
        assert dict(result) == {"files": 30, "findings": 10}
        assert len(editor.client.diagnostics[(tmp_path / "m03.py").as_uri()]) == 1
        assert (tmp_path / "m01.py").as_uri() not in editor.client.diagnostics
        (reports,) = editor.client.progress_reports.values()
        assert [each.kind for each in reports] == ["begin", "report", "report", "end"]
        (tmp_path / "m03.py").write_text("import torch\n")
        editor.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams(
                [lsp.FileEvent((tmp_path / "m03.py").as_uri(), lsp.FileChangeType.Changed)]
            )
        )
        await editor.until(
            lambda: not editor.client.diagnostics[(tmp_path / "m03.py").as_uri()], "the finding to go"
        )


async def test_a_scan_can_be_cancelled(tmp_path: pathlib.Path) -> None:
    for number in range(40):
        (tmp_path / f"m{number:02}.py").write_text("import torch\nslow(0.1)\n")
    async with session(folders=[tmp_path]) as editor:
        scan = asyncio.ensure_future(editor.command("gradguard.server.checkWorkspace"))
        await editor.until(lambda: editor.client.progress_reports, "progress")
        (token,) = editor.client.progress_reports
        editor.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token=token))
        assert (await scan)["files"] < 40


async def test_workspace_pull_is_opt_in(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text(FIND)
    async with session(change=pulls, folders=[tmp_path]) as editor:
        provider = editor.initialized.capabilities.diagnostic_provider
        assert provider is not None
        assert not provider.workspace_diagnostics
    options = {"globalSettings": {"scope": "workspace"}}
    async with session(change=pulls, folders=[tmp_path], initialization_options=options) as editor:
        provider = editor.initialized.capabilities.diagnostic_provider
        assert provider is not None
        assert provider.workspace_diagnostics
        params = lsp.WorkspaceDiagnosticParams(previous_result_ids=[])
        (report,) = (await editor.client.workspace_diagnostic_async(params)).items
        assert (report.uri, len(report.items)) == ((tmp_path / "a.py").as_uri(), 1)
        params = lsp.WorkspaceDiagnosticParams([lsp.PreviousResultId(report.uri, report.result_id)])
        (report,) = (await editor.client.workspace_diagnostic_async(params)).items
        assert report.kind == "unchanged"


# Logging


async def test_trace_goes_to_the_client_when_asked_for(editor: Editor) -> None:
    traced: list[lsp.LogTraceParams] = []

    @editor.client.feature(lsp.LOG_TRACE)
    def on_trace(params: lsp.LogTraceParams) -> None:
        traced.append(params)

    await editor.open(FIND)
    assert not traced
    editor.client.set_trace(lsp.SetTraceParams(value=lsp.TraceValue.Verbose))
    await editor.open(FIND)
    await editor.until(lambda: any("analysed" in each.message for each in traced), "a trace of the analysis")
    assert any(each.message == "received textDocument/didOpen" and each.verbose for each in traced)
    editor.client.set_trace(lsp.SetTraceParams(value=lsp.TraceValue.Off))


async def test_log_file_and_level(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "server.log"
    async with session([*TOY, "--log-level", "debug", "--log-file", str(log)]) as editor:
        await editor.open(FIND)
        assert any("gradguard" in each.message for each in editor.client.log_messages)
    assert "gradguard.lsp" in log.read_text()
    async with session([*TOY, "--log-level", "off"]) as editor:
        await editor.open("import torch\ncrash()\n")
        assert not editor.client.log_messages
