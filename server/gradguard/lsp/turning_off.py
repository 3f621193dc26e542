"""A rule turned off in the pyproject.toml of a file's project, as an edit."""

from __future__ import annotations

import os

from lsprotocol import types as lsp

from gradguard.check import pyproject
from gradguard.disk.reading import Missing, Unreadable
from gradguard.lsp.documents import uri_of
from gradguard.lsp.programs import Program
from gradguard.lsp.session import Session
from gradguard.lsp.snapshot import range_of
from gradguard.source.lines import LineIndex


def possible(session: Session, program: Program) -> bool:
    """Whether a program has a project, or a folder in which there may be one."""
    return _path(program) != "" and session.client.versioned_edits


async def edit(session: Session, program: Program, name: str) -> lsp.WorkspaceEdit | None:
    """What sets a rule to `off`; None where the file is written in a way that is left to people."""
    path = _path(program)
    try:
        text = await session.lookout.text(path)
    except Missing:
        if not session.client.creates_files:
            return None
        text = None
    except Unreadable:
        return None
    found = pyproject.turned_off(text or "", name)
    if found is None:
        return None
    span, new = found
    where = range_of(LineIndex(text or ""), span, session.encoding)
    document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri_of(path), version=None)
    made = lsp.TextDocumentEdit(document, [lsp.TextEdit(range=where, new_text=new)])
    if text is not None:
        return lsp.WorkspaceEdit(document_changes=[made])
    options = lsp.CreateFileOptions(ignore_if_exists=True)
    return lsp.WorkspaceEdit(document_changes=[lsp.CreateFile(uri=uri_of(path), options=options), made])


def _path(program: Program) -> str:
    force = program.force
    if force is None or not os.path.isabs(program.snapshot.path):
        return ""
    return force.project.path or (os.path.join(force.folder, pyproject.NAME) if force.folder else "")
