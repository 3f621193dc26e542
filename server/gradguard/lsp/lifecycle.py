"""From `initialize` to the client's end: capabilities, settings, folders, watched files."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from gradguard.check.pyproject import NAME as PYPROJECT
from gradguard.ide.wording import Wording
from gradguard.lsp import observed
from gradguard.lsp.client import client
from gradguard.lsp.documents import path_of, uri_of

if TYPE_CHECKING:
    from gradguard.lsp.server import Server

log = logging.getLogger(__name__)

LAST_RUN = (os.path.dirname(observed.NAME), observed.NAME)
"""The folder as well: of a file made at once in a new folder, editors on Linux often hear of the folder only."""
WATCHED = ("**/*.py", f"**/{PYPROJECT}", *(f"**/{name}".replace(os.sep, "/") for name in LAST_RUN))
PARENT_SECONDS = 3.0
SETTINGS_SECONDS = 3.0
"""How long the client may take to tell its settings before its documents are checked without."""


def register(server: Server) -> None:
    """Add the handlers."""
    feature = server.feature

    @feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        session = server.session
        session.client = client(params)
        session.encoding = str(
            getattr(server.workspace.position_encoding, "value", server.workspace.position_encoding)
        )
        options: Any = (
            params.initialization_options if isinstance(params.initialization_options, dict) else {}
        )
        language = options.get("language")
        server.wording = Wording(language if isinstance(language, str) else session.client.language)
        folders = [path_of(each.uri) for each in params.workspace_folders or ()]
        root = (params.root_uri and path_of(params.root_uri)) or params.root_path
        session.configuration.folders = [_clean(each) for each in folders or ([root] if root else [])]
        _take_options(server, options)
        if params.trace is not None:
            server.protocol.trace = params.trace
        server.publisher.pull = session.client.pull and options.get("diagnostics") != "push"
        server.begin()
        session.warm_up()
        if session.client.configuration:
            asyncio.get_running_loop().call_later(SETTINGS_SECONDS, session.configured)
        else:
            session.configured()
        if params.process_id is not None and _alive(params.process_id):
            server.keep(asyncio.ensure_future(_watch_parent(server, params.process_id)))
        log.info(
            "gradguard %s for %s in %s",
            server.version,
            session.client.name or "a client",
            folders or root or "no folder",
        )

    @feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        session = server.session
        session.lookout.runs()
        server.keep(asyncio.ensure_future(_register_dynamically(server)))
        await _ask_configuration(server)
        session.configured()
        server.ready()

    @feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        server.session.saved(params.text_document.uri)

    @feature("notebookDocument/didSave")
    def notebook_did_save(params: lsp.DidSaveNotebookDocumentParams) -> None:
        server.session.notebook_saved(params.notebook_document.uri)

    @feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        session = server.session
        changed = False
        if session.client.configuration:
            changed = await _ask_configuration(server)
        elif params.settings is not None:
            changed = session.configuration.editor(params.settings)
        if changed:
            server.settings_changed()

    @feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        session = server.session
        gone = {_clean(path_of(each.uri)) for each in params.event.removed}
        new = [_clean(path_of(each.uri)) for each in params.event.added]
        kept = [each for each in session.configuration.folders if each not in gone]
        session.configuration.folders = [*kept, *(each for each in new if each not in kept)]
        session.lookout.runs()
        await _ask_configuration(server)
        server.settings_changed()

    @feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        session = server.session
        paths = {path_of(each.uri): each.type for each in params.changes}
        names = {os.path.basename(path) for path in paths}
        if PYPROJECT in names:
            session.configuration.forget()
            server.settings_changed()
            return
        if any(path.endswith(LAST_RUN) for path in paths):
            session.lookout.runs()
        opened = session.documents.texts
        touched = {path for path in paths if path.endswith(".py") and path not in opened}
        appeared = any(
            kind != lsp.FileChangeType.Changed and path.endswith(".py") for path, kind in paths.items()
        )
        if appeared:  # an import may lead elsewhere now
            session.refresh()
        elif touched:
            session.refresh(each for path in touched for each in session.programs.readers(path))
        server.files_changed(touched)

    @feature(lsp.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.session.stop()
        server.scanner.stop()


def _take_options(server: Server, options: dict[str, Any]) -> None:
    """Settings that came with `initialize`: general ones, and a list with those of each folder."""
    configuration = server.session.configuration
    general = options.get("globalSettings")
    configuration.editor(general if isinstance(general, dict) else options)
    per_folder = options.get("settings")
    for each in per_folder if isinstance(per_folder, list) else ():
        where = (
            each.get("workspace") or each.get("workspaceFolder") or each.get("cwd")
            if isinstance(each, dict)
            else None
        )
        if isinstance(where, str):
            configuration.editor(each, _clean(path_of(where)))


async def _register_dynamically(server: Server) -> None:
    can = server.session.client
    wanted = []
    if can.watches:
        watchers = [lsp.FileSystemWatcher(glob_pattern=glob) for glob in WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        wanted.append(lsp.Registration("gradguard-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if can.registers_configuration:
        section = {"section": "gradguard"}
        wanted.append(lsp.Registration("gradguard-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if wanted:
        try:
            await server.client_register_capability_async(lsp.RegistrationParams(wanted))
        except Exception as error:
            log.warning("the client registered nothing: %s", error)


async def _ask_configuration(server: Server) -> bool:
    """Ask the editor for its settings. Whether anything changed."""
    session = server.session
    if not session.client.configuration:
        return False
    folders = list(session.configuration.folders)
    items = [lsp.ConfigurationItem(section="gradguard")]
    items += [lsp.ConfigurationItem(scope_uri=uri_of(each), section="gradguard") for each in folders]
    try:
        values = await server.workspace_configuration_async(lsp.ConfigurationParams(items))
    except Exception as error:
        log.warning("the client gave no settings: %s", error)
        return False
    changed = False
    for folder, value in zip([None, *folders], values or ()):
        if isinstance(value, dict):
            changed = session.configuration.editor(value, folder) or changed
    if changed:
        session.refresh()
    return changed


async def _watch_parent(server: Server, process: int) -> None:
    """End with the client's process. One that cannot be seen from the start (another container) is not watched."""
    while _alive(process):
        await asyncio.sleep(PARENT_SECONDS)
    log.info("the client's process %d ended", process)
    server.stop(None)


def _alive(process: int) -> bool:
    if os.name == "nt" or process <= 0:  # pragma: no cover
        return process > 0
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _clean(path: str) -> str:
    return os.path.normpath(path) if os.path.isabs(path) else path
