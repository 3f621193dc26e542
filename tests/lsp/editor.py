"""An editor for tests: a pytest-lsp client that keeps the text, as editors do, and sends edits of it."""

from __future__ import annotations

import asyncio
import itertools
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from gradguard.source.lines import LineIndex

ROOT = pathlib.Path(__file__).parents[2]
TOY = [sys.executable, str(ROOT / "tests" / "lsp" / "toy_server.py")]
REAL = [sys.executable, "-m", "gradguard", "server"]
PATIENCE = 120.0

_numbers = itertools.count()


def environment() -> dict[str, str]:
    """For a server process: this checkout's package, and no output buffering."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "server"), "PYTHONDONTWRITEBYTECODE": "1"}


class Editor:
    """One client with one server process."""

    def __init__(self, client: LanguageClient, encoding: str, initialized: lsp.InitializeResult) -> None:
        self.client = client
        self.encoding = encoding
        self.initialized = initialized
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: list[lsp.PublishDiagnosticsParams] = []
        client.protocol.fm.features[lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = self._publish

    def _publish(self, params: lsp.PublishDiagnosticsParams) -> None:
        self.published.append(params)
        self.client.diagnostics[params.uri] = params.diagnostics

    def uri(self, name: str = "") -> str:
        """A document that no other test uses."""
        return f"file:///nowhere/{next(_numbers)}/{name or 'train.py'}"

    async def open(self, text: str, uri: str = "", language: str = "python", wait: bool = True) -> str:
        """Open a document; its URI."""
        uri = uri or self.uri()
        self.texts[uri], self.versions[uri] = text, 1
        item = lsp.TextDocumentItem(uri=uri, language_id=language, version=1, text=text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
        if wait:
            await self.diagnostics(uri)
        return uri

    def edit(self, uri: str, start: int, end: int, new: str) -> None:
        """Replace a stretch of the text (offsets in code points), incrementally."""
        index = LineIndex(self.texts[uri])
        where = lsp.Range(self.position_at(index, start), self.position_at(index, end))
        self.texts[uri] = self.texts[uri][:start] + new + self.texts[uri][end:]
        self.send(uri, [lsp.TextDocumentContentChangePartial(range=where, text=new)])

    def replace(self, uri: str, old: str, new: str) -> None:
        """Replace the first occurrence of a text."""
        at = self.texts[uri].index(old)
        self.edit(uri, at, at + len(old), new)

    def send(self, uri: str, changes: Sequence[lsp.TextDocumentContentChangeEvent]) -> None:
        """Send changes as the next version."""
        self.versions[uri] += 1
        document = lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(text_document=document, content_changes=list(changes))
        )

    def close(self, uri: str) -> None:
        """Close a document."""
        self.client.text_document_did_close(
            lsp.DidCloseTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
        )

    async def diagnostics(self, uri: str, version: int | None = None) -> list[lsp.Diagnostic]:
        """Diagnostics pushed for the current version of a document, waiting for them."""
        wanted = self.versions.get(uri) if version is None else version
        return list((await self.publication(uri, wanted)).diagnostics)

    async def publication(self, uri: str, version: int | None) -> lsp.PublishDiagnosticsParams:
        """The latest publication for a version of a document."""

        def found() -> lsp.PublishDiagnosticsParams | None:
            return next(
                (each for each in reversed(self.published) if each.uri == uri and each.version == version),
                None,
            )

        await self.until(lambda: found() is not None, f"diagnostics for {uri} version {version}")
        result = found()
        assert result is not None
        return result

    async def until(self, condition: Any, what: str = "a condition") -> None:
        """Wait for something."""
        for _ in range(int(PATIENCE / 0.005)):
            if condition():
                return
            await asyncio.sleep(0.005)
        raise TimeoutError(f"waited in vain for {what}")

    def position_at(self, index: LineIndex, offset: int) -> lsp.Position:
        """The client's position of an offset."""
        line, column = index.position(offset)
        return lsp.Position(line - 1, index.units(line, column, self.encoding))

    def position(self, uri: str, text: str, inside: int = 0) -> lsp.Position:
        """Position of the first occurrence of a text."""
        return self.position_at(LineIndex(self.texts[uri]), self.texts[uri].index(text) + inside)

    def range(self, uri: str, text: str) -> lsp.Range:
        """Range of the first occurrence of a text."""
        return lsp.Range(self.position(uri, text), self.position(uri, text, len(text)))

    def text_of(self, uri: str, where: lsp.Range) -> str:
        """What a range covers."""
        index = LineIndex(self.texts[uri])
        start = index.offset(
            where.start.line + 1, index.column(where.start.line + 1, where.start.character, self.encoding)
        )
        end = index.offset(
            where.end.line + 1, index.column(where.end.line + 1, where.end.character, self.encoding)
        )
        return self.texts[uri][start:end]

    async def hover(self, uri: str, text: str, inside: int = 0) -> str | None:
        """Markdown of the hover on the first occurrence of a text."""
        document = lsp.TextDocumentIdentifier(uri=uri)
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(text_document=document, position=self.position(uri, text, inside))
        )
        return found.contents.value if found else None

    async def actions(
        self, uri: str, text: str, only: Sequence[str] | None = None, **context: Any
    ) -> list[lsp.CodeAction]:
        """Code actions for the first occurrence of a text."""
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(
                text_document=lsp.TextDocumentIdentifier(uri=uri),
                range=self.range(uri, text),
                context=lsp.CodeActionContext(diagnostics=[], only=only, **context),
            )
        )
        return list(found or ())

    async def resolved(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """The action with its edit."""
        return action if action.edit else await self.client.code_action_resolve_async(action)

    def apply(self, edit: lsp.WorkspaceEdit) -> None:
        """Apply an edit to the texts and tell the server, as an editor does."""
        if edit.document_changes:
            for change in edit.document_changes:
                assert isinstance(change, lsp.TextDocumentEdit)
                assert change.text_document.version == self.versions[change.text_document.uri]
                self._apply(
                    change.text_document.uri,
                    [each for each in change.edits if isinstance(each, lsp.TextEdit)],
                )
        for uri, edits in (edit.changes or {}).items():
            self._apply(uri, edits)

    def _apply(self, uri: str, edits: Sequence[lsp.TextEdit]) -> None:
        ordered = sorted(
            edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True
        )
        for each in ordered:
            index = LineIndex(self.texts[uri])
            start, end = (
                index.offset(p.line + 1, index.column(p.line + 1, p.character, self.encoding))
                for p in (each.range.start, each.range.end)
            )
            self.texts[uri] = self.texts[uri][:start] + each.new_text + self.texts[uri][end:]
        self.send(uri, [lsp.TextDocumentContentChangeWholeDocument(text=self.texts[uri])])

    async def command(self, name: str, *arguments: Any) -> Any:
        """Run a command of the server."""
        return await self.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams(command=name, arguments=list(arguments))
        )


async def start(
    command: Sequence[str] = TOY,
    *,
    profile: str = "visual-studio-code",
    folders: Sequence[pathlib.Path] = (),
    configuration: dict[str, Any] | None = None,
    change: Any = None,
    cwd: pathlib.Path = ROOT,
    **params: Any,
) -> Editor:
    """Start a server and shake hands. `change` may alter the capabilities of the profile."""
    client = make_test_lsp_client()
    for scope, values in (configuration or {}).items():
        client.set_configuration(values, scope_uri=scope)
    await client.start_io(*command, env=environment(), cwd=str(cwd))
    capabilities = client_capabilities(profile)
    if change is not None:
        change(capabilities)
    result = await client.initialize_session(
        lsp.InitializeParams(
            capabilities=capabilities,
            process_id=os.getpid(),
            workspace_folders=[lsp.WorkspaceFolder(uri=each.as_uri(), name=each.name) for each in folders]
            or None,
            **params,
        )
    )
    encoding = result.capabilities.position_encoding or "utf-16"
    return Editor(client, str(getattr(encoding, "value", encoding)), result)


async def stop(editor: Editor) -> None:
    """End the session in order."""
    await editor.client.shutdown_session()
    await editor.client.stop()
