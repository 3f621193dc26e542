"""Requests about open documents: diagnostics, code actions, hovers, hints, lenses."""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcContentModified
from pygls.lsp.server import LanguageServer

from gradguard.ide import hints, hover, lenses
from gradguard.ide.analysis import Analysis, facts
from gradguard.lsp import actions
from gradguard.lsp.programs import Program
from gradguard.lsp.publish import Publisher
from gradguard.lsp.scanner import Scanner
from gradguard.lsp.session import Session
from gradguard.lsp.snapshot import Snapshot

PATIENCE = 5.0
"""Seconds that a request waits for the analysis of the text it is about."""
LONG_PATIENCE = 60.0
"""The same for what the client shows whenever it comes, and does not ask for again."""


def register(server: LanguageServer, session: Session, publisher: Publisher) -> None:
    """Add the handlers that every client gets."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        ready = await answer(session, params.text_document.uri)
        if ready is None:
            return None
        program, snapshot, analysis = ready
        place = snapshot.place(params.text_document.uri, params.position, session.encoding)
        if place is None:
            return None
        shown = session.findings(program)
        found = hover.hover(
            analysis, shown, *place, session.wording, facts(analysis), above=session.client.shows_status
        )
        if found is None:
            return None
        kind = lsp.MarkupKind.Markdown if session.client.markdown else lsp.MarkupKind.PlainText
        text = found.text if session.client.markdown else hover.plain(found.text)
        where = snapshot.location(found.span, session.encoding)
        return lsp.Hover(lsp.MarkupContent(kind, text), where.range if where is not None else None)

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=list(actions.KINDS), resolve_provider=True),
    )
    async def on_code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        ready = await answer(session, params.text_document.uri)
        if ready is None:
            return None
        shown = publisher.shown(params.text_document.uri)
        return await actions.actions(session, shown, *ready, params)

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def on_resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return await actions.resolve(session, action)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def on_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint] | None:
        ready = await answer(session, params.text_document.uri)
        if ready is None or not ready[2].settings.inlay_hints:
            return None
        _, snapshot, analysis = ready
        uri, encoding = params.text_document.uri, session.encoding
        wanted = snapshot.span(uri, params.range, encoding)
        known = facts(analysis)
        if wanted is None or known is None:
            return None
        out = []
        for hint in hints.hints(analysis, known, session.findings(ready[0]), wanted, session.wording):
            location = snapshot.location(hint.span, encoding)
            if location is not None and location.uri == uri:
                tooltip = lsp.MarkupContent(lsp.MarkupKind.Markdown, hint.tooltip) if hint.tooltip else None
                out.append(
                    lsp.InlayHint(
                        position=location.range.end, label=hint.label, tooltip=tooltip, padding_left=True
                    )
                )
        return out

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def on_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens] | None:
        ready = await answer(session, params.text_document.uri)
        if ready is None or not ready[2].settings.code_lens:
            return None
        _, snapshot, analysis = ready
        known = facts(analysis)
        if known is None:
            return None
        out = []
        for lens in lenses.lenses(analysis, known, session.wording):
            location = snapshot.location(lens.span, session.encoding)
            if location is not None and location.uri == params.text_document.uri:
                out.append(
                    lsp.CodeLens(range=location.range, command=lsp.Command(title=lens.title, command=""))
                )
        return out


def register_pull(
    server: LanguageServer, session: Session, publisher: Publisher, scanner: Scanner, *, workspace: bool
) -> None:
    """Add diagnostics on request, for clients that ask for them."""

    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=workspace, identifier="gradguard"
        ),
    )
    async def on_pull(params: lsp.DocumentDiagnosticParams) -> Any:
        uri = params.text_document.uri
        program = await session.current(uri, LONG_PATIENCE, whole=False)
        if program is None and session.program(uri) is not None:
            raise JsonRpcContentModified("the text is being analysed")
        shown = publisher.shown(uri)
        if shown is None:
            return lsp.RelatedFullDocumentDiagnosticReport(items=[])
        if params.previous_result_id == shown.result_id:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=shown.result_id)
        return lsp.RelatedFullDocumentDiagnosticReport(items=shown.items, result_id=shown.result_id)

    if not workspace:
        return

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def on_pull_all(params: lsp.WorkspaceDiagnosticParams) -> lsp.WorkspaceDiagnosticReport:
        await scanner.finished()
        had = {each.uri: each.value for each in params.previous_result_ids}
        items: list[
            lsp.WorkspaceFullDocumentDiagnosticReport | lsp.WorkspaceUnchangedDocumentDiagnosticReport
        ] = []
        for uri, shown in publisher.known().items():
            if had.get(uri) == shown.result_id:
                items.append(
                    lsp.WorkspaceUnchangedDocumentDiagnosticReport(
                        uri=uri, version=shown.version, result_id=shown.result_id
                    )
                )
            else:
                items.append(
                    lsp.WorkspaceFullDocumentDiagnosticReport(
                        uri=uri, version=shown.version, items=shown.items, result_id=shown.result_id
                    )
                )
        for uri in had.keys() - publisher.known().keys():
            items.append(lsp.WorkspaceFullDocumentDiagnosticReport(uri=uri, version=None, items=[]))
        return lsp.WorkspaceDiagnosticReport(items=items)


async def answer(session: Session, uri: str) -> tuple[Program, Snapshot, Analysis] | None:
    """The answer for the current version of a document; None where there is nothing to say.

    Raises JsonRpcContentModified when the text is still being analysed after the wait.
    """
    program = await session.current(uri, PATIENCE)
    if program is None:
        if session.program(uri) is not None:
            raise JsonRpcContentModified("the text is being analysed")
        return None
    if program.analysis is None or program.of is None:
        return None
    return program, program.of, program.analysis
