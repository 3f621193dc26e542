"""Commands that clients call: about the server, about what stands at the cursor, and the workspace scan."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradguard import __version__
from gradguard.check.catalogue import catalogue
from gradguard.ide import hover, nodes, ophover
from gradguard.ide.pages import link
from gradguard.lsp import actions, configuration
from gradguard.lsp.actions import SHOW_RULE
from gradguard.lsp.documents import path_of
from gradguard.lsp.features import answer
from gradguard.lsp.publish import Publisher
from gradguard.lsp.scanner import Scanner
from gradguard.lsp.session import Session
from gradguard.ops import table

log = logging.getLogger(__name__)

PREFIX = "gradguard.server."


def register(server: LanguageServer, session: Session, publisher: Publisher, scanner: Scanner) -> None:
    """Add the commands."""

    @server.command(f"{PREFIX}info")
    async def info(*_: Any) -> dict[str, Any]:
        paths = session.configuration.folders or [""]
        release = (await session.lookout.settings(os.path.join(paths[0], "x.py"))).settings.release
        return {
            "version": __version__,
            "python": platform.python_version(),
            "interpreter": sys.executable,
            "torch": table.load(release).version,
            "encoding": session.encoding,
            "pull": publisher.pull,
        }

    @server.command(f"{PREFIX}ping")
    async def ping(*_: Any) -> bool:
        """For clients that want to know whether anybody answers."""
        return True

    @server.command(f"{PREFIX}debugInformation")
    async def debug_information(*arguments: Any) -> str:
        return await debug_text(session, publisher.pull, _uri(arguments))

    @server.command("gradguard.showDebugInformation")
    async def show_debug_information(*arguments: Any) -> str:
        text = await debug_text(session, publisher.pull, _uri(arguments))
        server.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Info, message=text))
        return text

    @server.command(f"{PREFIX}explain")
    async def explain(*arguments: Any) -> dict[str, str] | None:
        """A rule's code or name; or a document and a position in it."""
        if len(arguments) == 1 and isinstance(arguments[0], str):
            found = hover.explain(arguments[0], session.wording)
            return {"title": found[0], "text": found[1]} if found else None
        uri = _uri(arguments)
        position = _position(arguments[1]) if len(arguments) > 1 else None
        program = await session.current(uri, 5.0) if uri else None
        if (
            position is None
            or program is None
            or program.analysis is None
            or program.of is None
            or uri is None
        ):
            return None
        place = program.of.place(uri, position, session.encoding)
        if place is None:
            return None
        for finding in (*session.findings(program), *program.analysis.possible):
            if finding.path == program.of.path and hover.covers(finding.span, *place):
                found = hover.explain(finding.code, session.wording)
                if found:
                    return {"title": found[0], "text": found[1]}
        at = nodes.at(program.analysis.source, *place)
        about = ophover.hover(program.analysis, at, session.wording) if at else None
        return {"title": "gradguard", "text": about.text} if about else None

    @server.command(f"{PREFIX}fixAll")
    async def fix_all(*arguments: Any) -> dict[str, Any] | None:
        """Every safe fix of a document, or of the notebook that it is a cell of, for the client to apply as one edit."""
        uri = _uri(arguments)
        ready = await answer(session, uri) if uri else None
        if ready is None:
            return None
        return await actions.fix_everything(session, ready[0], ready[1])

    @server.command(SHOW_RULE)
    async def show_rule(*arguments: Any) -> dict[str, str] | None:
        """Opens the page of a rule; where the client opens none, its address is told."""
        rule = catalogue().rule(arguments[0]) if arguments and isinstance(arguments[0], str) else None
        if rule is None:
            return None
        address = link(rule.name)
        if session.client.shows_documents:
            server.window_show_document(lsp.ShowDocumentParams(uri=address, external=True))
        else:
            message = f"{rule.code} {rule.name}: {address}"
            server.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Info, message=message))
        return {"code": rule.code, "page": address}

    @server.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: lsp.WorkDoneProgressCancelParams) -> None:
        scanner.cancel(params.token)

    @server.command(f"{PREFIX}checkWorkspace")
    async def check_workspace(*_: Any) -> dict[str, int]:
        found = await scanner.run()
        publisher.again()
        unread = {"unread": found.unread} if found.unread else {}
        return {"files": found.files, "findings": found.findings, **unread}


async def debug_text(session: Session, pulled: bool, uri: str | None) -> str:
    """Versions, the torch table, and the settings in force for a document with where each came from.

    `pulled`: the client asks for diagnostics itself.
    """
    path = path_of(uri) if uri else ""
    force = await session.lookout.settings(path or (session.configuration.folders or [""])[0])
    settings = force.settings
    rows = table.load(settings.release)
    lines = [
        f"gradguard {__version__}",
        f"Python {platform.python_version()} ({sys.executable}) on {platform.platform()}",
        f"op table: torch {rows.version}" + (f" ({rows.note})" if rows.note else ""),
        f"client: {session.client.name or 'unknown'}, position encoding {session.encoding}, "
        f"diagnostics {'pulled' if pulled else 'pushed'}, language {session.wording.language}",
        f"folders: {', '.join(session.configuration.folders) or 'none'}",
        f"open: {len(session.documents)} documents in {len(session.programs)} programs",
        f"project: {force.project.path or 'no pyproject.toml with [tool.gradguard]'}",
        "",
        f"settings for {path or 'no document'}:",
    ]
    lines += [f"  {key} = {value}  ({origin})" for key, value, origin in configuration.describe(force)]
    problems = [str(each) for found in session.configuration.problems.values() for each in found]
    if problems:
        lines += ["", "problems:", *(f"  {each}" for each in problems)]
    program = session.program(uri) if uri else None
    if program is not None and program.analysis is not None:
        lines += ["", f"findings: {len(program.analysis.findings)}, limits: {len(program.analysis.limits)}"]
        lines += [f"  line {each.span.line}: {each.message}" for each in program.analysis.limits[:20]]
    return "\n".join(lines)


def _uri(arguments: tuple[Any, ...]) -> str | None:
    return arguments[0] if arguments and isinstance(arguments[0], str) else None


def _position(value: Any) -> lsp.Position | None:
    if isinstance(value, str):
        value = json.loads(value)
    line = value.get("line") if isinstance(value, dict) else getattr(value, "line", None)
    character = value.get("character") if isinstance(value, dict) else getattr(value, "character", None)
    if isinstance(line, int) and isinstance(character, int) and min(line, character) >= 0:
        return lsp.Position(line, character)
    return None
