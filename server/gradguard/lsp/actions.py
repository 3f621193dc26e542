"""Code actions: offers as the client's actions, their edits worked out when the action is resolved."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcContentModified

from gradguard.findings import Applicability, Finding, FixPlan, Limit, Span
from gradguard.ide import actions as ide
from gradguard.ide.actions import Change, Offer, What
from gradguard.ide.analysis import Analysis
from gradguard.lsp import turning_off
from gradguard.lsp.programs import Program
from gradguard.lsp.publish import Shown
from gradguard.lsp.session import Session
from gradguard.lsp.snapshot import Snapshot

log = logging.getLogger(__name__)

SHOW_RULE = "gradguard.showRule"
"""A command that opens the page of a rule. VS Code shows it beside the editor; for others the server opens it."""
SHOW_ALL = "gradguard.showAll"
SELECT = "gradguard.select"
"""Commands of this project's extension: a list of what is shown of a rule; a stretch of a line is selected."""
FIX_ALL = "source.fixAll.gradguard"
IN_PLACE = ("make-in-place", "add-inplace")
KINDS = (lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite, FIX_ALL)
_KIND_OF = {
    What.FIX: lsp.CodeActionKind.QuickFix.value,
    What.REWRITE: lsp.CodeActionKind.RefactorRewrite.value,
    What.EXPLAIN: lsp.CodeActionKind.QuickFix.value,
    What.SHOW_ALL: lsp.CodeActionKind.QuickFix.value,
    What.TURN_OFF: lsp.CodeActionKind.QuickFix.value,
    What.IGNORE: lsp.CodeActionKind.QuickFix.value,
    What.FIX_ALL: FIX_ALL,
}


_LAST = {What.SHOW_ALL: 1, What.TURN_OFF: 2, What.IGNORE: 3}
"""What stands below all else, in this order."""


async def actions(
    session: Session,
    shown: Shown | None,
    program: Program,
    snapshot: Snapshot,
    analysis: Analysis,
    params: lsp.CodeActionParams,
) -> list[lsp.CodeAction]:
    """The actions for a range, tied to the diagnostics that are `shown`.

    What the client says about its diagnostics is not used: editors garble it.
    """
    uri = params.text_document.uri
    span = snapshot.span(uri, params.range, session.encoding)
    if span is None:
        return []
    only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
    found: list[Offer] = []
    if _wanted(_PLAIN, only):
        here = [each for each in session.findings(program) if ide.touches(each.span, span)]
        here = list(await session.repairs.repairable(program, snapshot, here))
        found += ide.offers(analysis, here, span, session.wording)
    automatic = params.context.trigger_kind == lsp.CodeActionTriggerKind.Automatic
    if not automatic and _wanted((lsp.CodeActionKind.RefactorRewrite.value,), only):
        found += await session.repairs.in_place(program, snapshot, span, session.wording)
    if _asked(FIX_ALL, only) or (not only and not automatic and session.client.lazy_edits):
        everything = ide.fix_all(analysis, snapshot.cell(uri), session.wording)
        found += [everything] if everything else []
    found.sort(key=lambda offer: _LAST.get(offer.what, 0))
    out = []
    diagnostics = _Diagnostics(shown, snapshot, session.encoding)
    for offer in found:
        kind = _KIND_OF[offer.what]
        if only and not _asked(kind, only):
            continue
        action = await _action(session, program, snapshot, analysis, offer, kind, uri, diagnostics)
        if action is not None:
            out.append(action)
    return out


async def resolve(session: Session, action: lsp.CodeAction) -> lsp.CodeAction:
    """Give an action its edit. Raises JsonRpcContentModified when the text is another by now."""
    data: Any = action.data
    if action.edit is not None or not isinstance(data, dict):
        return action
    program = session.program(str(data.get("uri")))
    if (
        program is None
        or program.analysis is None
        or program.of is None
        or data.get("stamp") != program.snapshot.stamp
        or not program.fresh
    ):
        raise JsonRpcContentModified("the text changed after the action was offered")
    offer = _again(session, program, program.analysis, data)
    if offer is None:
        raise JsonRpcContentModified("the finding is gone")
    action.edit = await _edit(session, program, program.of, program.analysis, offer, str(data["uri"]))
    if offer.reason and action.edit is not None and session.client.shows_status:
        action.command = _selecting(action.edit, offer)
    return action


def _selecting(edit: lsp.WorkspaceEdit, offer: Offer) -> lsp.Command | None:
    """Selects what stands for a reason once an edit was made, for people to write over."""
    for change in edit.document_changes or ():
        if not isinstance(change, lsp.TextDocumentEdit) or len(change.edits) != 1:
            continue
        (one,) = change.edits
        at = one.new_text.rfind(offer.reason) if isinstance(one, lsp.TextEdit) else -1
        if at >= 0 and "\n" not in getattr(one, "new_text", ""):
            start = one.range.start.character + at
            place = [change.text_document.uri, one.range.start.line, start, start + len(offer.reason)]
            return lsp.Command(title=offer.title, command=SELECT, arguments=place)
    return None


async def _action(
    session: Session,
    program: Program,
    snapshot: Snapshot,
    analysis: Analysis,
    offer: Offer,
    kind: str,
    uri: str,
    diagnostics: _Diagnostics,
) -> lsp.CodeAction | None:
    client = session.client
    action = lsp.CodeAction(title=offer.title, kind=kind)
    if client.preferred and offer.preferred:
        action.is_preferred = True
    about = offer.about if offer.what is not What.FIX_ALL else ()
    action.diagnostics = [item for finding in about for item in diagnostics.of(finding)] or None
    if offer.what in (What.EXPLAIN, What.SHOW_ALL):
        if offer.what is What.SHOW_ALL and not client.shows_status:
            return None  # what other editors have for it is theirs
        name = SHOW_RULE if offer.what is What.EXPLAIN else SHOW_ALL
        action.command = lsp.Command(title=offer.title, command=name, arguments=[offer.about[0].code])
        return action
    if offer.what is What.TURN_OFF and not (client.lazy_edits and turning_off.possible(session, program)):
        return None
    if client.lazy_edits:
        action.data = {"uri": uri, "stamp": snapshot.stamp, "what": offer.what.value, "key": _key(offer)}
        return action
    action.edit = await _edit(session, program, snapshot, analysis, offer, uri)
    return action if action.edit is not None else None


async def _edit(
    session: Session, program: Program, snapshot: Snapshot, analysis: Analysis, offer: Offer, uri: str
) -> lsp.WorkspaceEdit | None:
    if offer.what is What.TURN_OFF:
        return await turning_off.edit(session, program, offer.about[0].name)
    if offer.what is What.FIX_ALL:
        changes = await session.repairs.fixed(program, snapshot, snapshot.cell(uri))
    else:
        faults: list[Limit] = []
        changes = ide.changes(offer, analysis, faults)
        session.crashed(snapshot.path, faults)
    return workspace_edit(session, snapshot, changes) if changes else None


async def fix_everything(session: Session, program: Program, snapshot: Snapshot) -> dict[str, object] | None:
    """Every safe fix of a document or of all cells of a notebook as one edit, with what it comes to; None where the text changed."""
    found = await session.repairs.fixed_everywhere(program, snapshot)
    if found is None:
        return None
    by_document: dict[str, list[Change]] = {}
    for change in found.changes:
        by_document.setdefault(snapshot.part(change.span.line)[0].uri, []).append(change)
    kept = [group for group in by_document.values() if workspace_edit(session, snapshot, group)]
    edit = workspace_edit(session, snapshot, [change for group in kept for change in group])
    made = 0
    if edit is not None:
        made = len(edit.document_changes or edit.changes or ())
    return {
        "edit": edit,
        "fixed": found.fixed if edit is not None else 0,
        "documents": made,
        "left": found.left if edit is not None else found.left + found.fixed,
    }


def workspace_edit(
    session: Session, snapshot: Snapshot, changes: Iterable[Change]
) -> lsp.WorkspaceEdit | None:
    """Changes of a program as the client's edit; None where they would change what was not read as it was typed."""
    by_uri: dict[str, list[lsp.TextEdit]] = {}
    for change in changes:
        span = snapshot.typed(change.span)
        if span is None or (snapshot.places is not None and not snapshot.places.alive(change.span)):
            return None  # made for a text that is not there
        document, before = snapshot.part(span.line)
        if span.end_line - before > document.index.count:
            return None  # an edit never reaches from one cell into the next
        if snapshot.notebook and not document.content.as_read(span.line - before, span.end_line - before):
            return None  # it would write over a magic
        text = change.text
        if document.index.line_end != "\n" and "\r" not in text:
            text = text.replace("\n", document.index.line_end)
        where = snapshot.typed_location(span, session.encoding)
        by_uri.setdefault(where.uri, []).append(lsp.TextEdit(range=where.range, new_text=text))
    if not by_uri:
        return None
    if not session.client.versioned_edits:
        return lsp.WorkspaceEdit(changes=by_uri)
    versions = {each.uri: each.version for each in snapshot.documents}
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(
                lsp.OptionalVersionedTextDocumentIdentifier(uri=each, version=versions[each]), edits
            )
            for each, edits in by_uri.items()
        ]
    )


def _again(session: Session, program: Program, analysis: Analysis, data: dict[str, Any]) -> Offer | None:
    findings = session.findings(program)
    if data.get("what") == What.FIX_ALL.value:
        return ide.fix_all(analysis, program.snapshot.cell(str(data.get("uri"))), session.wording)
    key = data.get("key") or [""]
    if key[0] in IN_PLACE:
        kind, *place, title = key
        plan = FixPlan(kind, title, Applicability.UNSAFE, Span(*place))
        return Offer(What.REWRITE, title, (), plan)
    for finding in findings:
        for offer in ide.offers(analysis, [finding], finding.span, session.wording):
            if offer.what.value == data.get("what") and _key(offer) == data.get("key"):
                return offer
    return None


def _key(offer: Offer) -> list[Any]:
    if offer.what is What.FIX_ALL:
        return []
    if not offer.about:
        assert offer.plan is not None
        at = offer.plan.span
        return [offer.plan.kind, at.line, at.column, at.end_line, at.end_column, offer.title]
    finding = offer.about[0]
    span = finding.span
    return [finding.code, span.line, span.column, span.end_line, span.end_column, offer.title]


class _Diagnostics:
    """The diagnostics of a document, by what they are about."""

    def __init__(self, shown: Shown | None, snapshot: Snapshot, encoding: str) -> None:
        self._snapshot, self._encoding = snapshot, encoding
        self._items: dict[tuple[object, ...], list[lsp.Diagnostic]] = {}
        for item in shown.items if shown is not None else ():
            self._items.setdefault((item.code, *_place(item.range)), []).append(item)

    def of(self, finding: Finding) -> list[lsp.Diagnostic]:
        """Those that show a finding."""
        where = self._snapshot.location(finding.span, self._encoding)
        return self._items.get((finding.code, *_place(where.range)), []) if where is not None else []


def _place(where: lsp.Range) -> tuple[int, int, int, int]:
    return where.start.line, where.start.character, where.end.line, where.end.character


_PLAIN = (lsp.CodeActionKind.QuickFix.value, lsp.CodeActionKind.RefactorRewrite.value)


def _wanted(kinds: Iterable[str], only: list[str]) -> bool:
    return not only or any(_asked(kind, only) for kind in kinds)


def _asked(kind: str, only: list[str]) -> bool:
    """Whether a kind is one of those asked for, or below one of them."""
    return any(kind == each or kind.startswith(each + ".") or each == "" for each in only)
