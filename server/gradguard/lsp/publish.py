"""Diagnostics on their way to the client: pushed with each answer, or pulled with result ids."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradguard.check.parsing import Problem
from gradguard.check.pyproject import NAME as PYPROJECT
from gradguard.findings import Related
from gradguard.lsp.diagnostics import SOURCE, diagnostics
from gradguard.lsp.documents import uri_of
from gradguard.lsp.programs import Program
from gradguard.lsp.session import Session
from gradguard.lsp.snapshot import range_of
from gradguard.source.lines import LineIndex


@dataclass(frozen=True, slots=True)
class Shown:
    """What the client has (or may pull) for one document."""

    version: int | None
    items: tuple[lsp.Diagnostic, ...]
    result_id: str


class Publisher:
    """Turns answers into diagnostics and remembers what was shown for each document."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server, self._session = server, session
        self._shown: dict[str, Shown] = {}
        self._ids = itertools.count(1)
        self._last: tuple[str, LineIndex] | None = None
        self.pull = False
        """Whether the client asks for diagnostics itself."""

    def answered(self, program: Program) -> None:
        """Show a new answer, unless findings are to be shown only when the file is saved."""
        session = self._session
        snapshot = program.of
        if snapshot is None:
            return
        on_save = program.force is not None and program.force.settings.run == "onSave"
        if on_save and not program.saved and all(each.uri in self._shown for each in snapshot.documents):
            return
        by_uri = diagnostics(
            session.findings(program),
            snapshot,
            session.client,
            session.wording,
            self.elsewhere,
            session.encoding,
        )
        versions = {each.uri: each.version for each in snapshot.documents}
        changed = False
        for uri, items in by_uri.items():
            changed = self._show(uri, versions[uri], tuple(items)) or changed
        for uri in program.shown - by_uri.keys():  # cells that were removed
            self.forget(uri)
        program.shown = set(by_uri)
        if changed and program.refreshed:
            self.again()

    def gone(self, program: Program) -> None:
        """Take everything back that was shown for a program."""
        for uri in program.shown:
            self.forget(uri)

    def forget(self, uri: str) -> None:
        """Show nothing for a document any more."""
        before = self._shown.pop(uri, None)
        if before is not None and not self.pull:
            self._server.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[])
            )

    def shown(self, uri: str) -> Shown | None:
        """What is shown for a document."""
        return self._shown.get(uri)

    def known(self) -> dict[str, Shown]:
        """Everything that is shown."""
        return dict(self._shown)

    def put(self, uri: str, items: tuple[lsp.Diagnostic, ...]) -> None:
        """Show findings of a file that is not open."""
        self._show(uri, None, items)

    def settings(self, where: str, problems: Sequence[Problem]) -> None:
        """Show what is wrong in a file with settings, at its places. Pushed to every client: nobody asks for those of such files."""
        if not os.path.isabs(where) or not where.endswith(PYPROJECT):
            return
        items = []
        for each in problems:
            line = max(each.line, 1) - 1
            index = LineIndex(each.text)
            start, end = (
                lsp.Position(line, index.units(1, column, self._session.encoding))
                for column in (each.column, each.end_column)
            )
            message = self._session.wording.message(each.message)
            key = each.key.removeprefix("[tool.gradguard]").strip()
            items.append(
                lsp.Diagnostic(
                    range=lsp.Range(start, end),
                    message=f"{key}: {message}" if key else message,
                    severity=lsp.DiagnosticSeverity.Error if not key else lsp.DiagnosticSeverity.Warning,
                    code="settings",
                    source=SOURCE,
                )
            )
        params = lsp.PublishDiagnosticsParams(uri=uri_of(where), diagnostics=items)
        self._server.text_document_publish_diagnostics(params)

    def again(self) -> None:
        """Ask a client that pulls to do so for everything: settings changed."""
        if self.pull and self._session.client.refresh_diagnostics:
            self._server.workspace_diagnostic_refresh(None)

    def _show(self, uri: str, version: int | None, items: tuple[lsp.Diagnostic, ...]) -> bool:
        before = self._shown.get(uri)
        same = before is not None and before.items == items
        result_id = before.result_id if before is not None and same else str(next(self._ids))
        self._shown[uri] = Shown(version, items, result_id)
        if not self.pull:
            self._server.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=version)
            )
        return not same

    def elsewhere(self, related: Related) -> lsp.Location | None:
        """The place of a related span in another file."""
        session = self._session
        for program in session.programs.at(related.path):
            return program.snapshot.typed_location(related.span, session.encoding)
        for program in session.programs.readers(related.path):
            text = program.seen[related.path]
            if text is not None:
                where = range_of(self._lines(related.path, text), related.span, session.encoding)
                return lsp.Location(uri_of(related.path), where)
        start = lsp.Position(related.span.line - 1, related.span.column - 1)
        end = lsp.Position(related.span.end_line - 1, related.span.end_column - 1)
        return lsp.Location(uri_of(related.path), lsp.Range(start, end))

    def _lines(self, path: str, text: str) -> LineIndex:
        """The lines of a file of which several findings speak, mostly in a row."""
        if self._last is None or self._last[0] != path or self._last[1].text is not text:
            self._last = path, LineIndex(text)
        return self._last[1]
