"""From `initialize` to the client's end: capabilities, settings, folders, watched files."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradguard.check.pyproject import NAME as PYPROJECT
from gradguard.disk.environment import torch_beside
from gradguard.ide.wording import Wording
from gradguard.lsp import features, observed
from gradguard.lsp.client import client
from gradguard.lsp.documents import path_of, uri_of
from gradguard.lsp.programs import Program
from gradguard.lsp.publish import Publisher
from gradguard.lsp.scanner import Scanner
from gradguard.lsp.session import Session
from gradguard.lsp.tasks import Tasks

log = logging.getLogger(__name__)

LAST_RUN = (os.path.dirname(observed.NAME), observed.NAME)
"""The folder as well: of a file made at once in a new folder, editors on Linux often hear of the folder only."""
WATCHED = ("**/*.py", f"**/{PYPROJECT}", *(f"**/{name}".replace(os.sep, "/") for name in LAST_RUN))
MOST_FOLDERS = 200
"""Names of folders that are watched."""
PARENT_SECONDS = 3.0
SETTINGS_SECONDS = 3.0
"""How long the client may take to tell its settings before its documents are checked without."""


class Lifecycle:
    """What the client says of itself, its settings and its files. `gone` is called when its process has ended."""

    def __init__(
        self,
        server: LanguageServer,
        session: Session,
        publisher: Publisher,
        scanner: Scanner,
        tasks: Tasks,
        gone: Callable[[], None],
    ) -> None:
        self._server = server
        self._session = session
        self._publisher = publisher
        self._scanner = scanner
        self._tasks = tasks
        self._gone = gone
        self._scope = "open"
        self._folders: set[str] = set()
        """Names of folders, and of modules that may become some, that are watched."""

    def register(self) -> None:
        """Add the handlers."""
        handlers: dict[str, Callable[..., object]] = {
            lsp.INITIALIZE: self._initialize,
            lsp.INITIALIZED: self._initialized,
            lsp.TEXT_DOCUMENT_DID_SAVE: self._saved,
            "notebookDocument/didSave": self._notebook_saved,
            lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: self._configuration_changed,
            lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders_changed,
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._files_changed,
            lsp.SHUTDOWN: self._shutdown,
        }
        for method, handler in handlers.items():
            # pygls hangs attributes on a handler, which a method cannot have.
            self._server.feature(method)(partial(handler))

    # Start and end

    def _initialize(self, params: lsp.InitializeParams) -> None:
        session = self._session
        options: Any = (
            params.initialization_options if isinstance(params.initialization_options, dict) else {}
        )
        self._know_client(params, options)
        self._take_options(options)
        if params.trace is not None:
            self._server.protocol.trace = params.trace
        if self._publisher.pull:
            features.register_pull(
                self._server, session, self._publisher, self._scanner, workspace=self._wanted == "workspace"
            )
        session.warm_up()
        if session.client.configuration:
            asyncio.get_running_loop().call_later(SETTINGS_SECONDS, session.configured)
        else:
            session.configured()
        if params.process_id is not None and _alive(params.process_id):
            self._tasks.keep(asyncio.ensure_future(self._watch_parent(params.process_id)))
        log.info(
            "gradguard %s for %s in %s",
            self._server.version,
            session.client.name or "a client",
            session.configuration.folders or "no folder",
        )
        if installed := torch_beside():
            log.info("torch %s is installed, and assumed where no setting names another", installed)

    def _know_client(self, params: lsp.InitializeParams, options: dict[str, Any]) -> None:
        """Take over what the client can do, its language, and its folders."""
        session = self._session
        session.client = client(params)
        encoding = self._server.workspace.position_encoding
        session.encoding = str(getattr(encoding, "value", encoding))
        language = options.get("language")
        session.wording = Wording(language if isinstance(language, str) else session.client.language)
        folders = [path_of(each.uri) for each in params.workspace_folders or ()]
        root = (params.root_uri and path_of(params.root_uri)) or params.root_path
        session.configuration.folders = [_clean(each) for each in folders or ([root] if root else [])]
        self._publisher.pull = session.client.pull and options.get("diagnostics") != "push"

    def _take_options(self, options: dict[str, Any]) -> None:
        """Settings that came with `initialize`: general ones, and a list with those of each folder."""
        configuration = self._session.configuration
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

    async def _initialized(self, params: lsp.InitializedParams) -> None:
        self._session.lookout.runs()
        self._tasks.keep(asyncio.ensure_future(self._register_dynamically()))
        await self._ask_configuration()
        self._session.configured()
        self._look_at_settings(self._session.configuration.folders)
        self._follow_scope()

    def _look_at_settings(self, folders: Iterable[str]) -> None:
        """Read the settings of these folders, so that what is wrong in them is told although none of their files is open."""
        for folder in folders:
            if os.path.isabs(folder):
                self._session.lookout.look(folder)

    async def _register_dynamically(self) -> None:
        can = self._session.client
        wanted = []
        if can.watches:
            watchers = [lsp.FileSystemWatcher(glob_pattern=glob) for glob in WATCHED]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            wanted.append(
                lsp.Registration("gradguard-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            )
        if can.registers_configuration:
            section = {"section": "gradguard"}
            wanted.append(
                lsp.Registration("gradguard-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section)
            )
        if wanted:
            await self._register(wanted)

    async def _register(self, wanted: list[lsp.Registration]) -> None:
        try:
            await self._server.client_register_capability_async(lsp.RegistrationParams(wanted))
        except Exception as error:
            log.warning("the client registered nothing: %s", error)

    async def _watch_parent(self, process: int) -> None:
        """End with the client's process. One that cannot be seen from the start (another container) is not watched."""
        while _alive(process):
            await asyncio.sleep(PARENT_SECONDS)
        log.info("the client's process %d ended", process)
        self._gone()

    def _shutdown(self, params: None) -> None:
        self._session.stop()
        self._scanner.stop()

    # Settings and folders

    async def _configuration_changed(self, params: lsp.DidChangeConfigurationParams) -> None:
        session = self._session
        changed = False
        if session.client.configuration:
            changed = await self._ask_configuration()
        elif params.settings is not None:
            changed = session.configuration.editor(params.settings)
        if changed:
            self._answer_again()

    async def _folders_changed(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        session = self._session
        gone = {_clean(path_of(each.uri)) for each in params.event.removed}
        new = [_clean(path_of(each.uri)) for each in params.event.added]
        kept = [each for each in session.configuration.folders if each not in gone]
        session.configuration.folders = [*kept, *(each for each in new if each not in kept)]
        session.lookout.runs()
        await self._ask_configuration()
        self._answer_again()
        self._look_at_settings(new)

    async def _ask_configuration(self) -> bool:
        """Ask the editor for its settings. Whether anything changed."""
        session = self._session
        if not session.client.configuration:
            return False
        folders = list(session.configuration.folders)
        items = [lsp.ConfigurationItem(section="gradguard")]
        items += [lsp.ConfigurationItem(scope_uri=uri_of(each), section="gradguard") for each in folders]
        try:
            values = await self._server.workspace_configuration_async(lsp.ConfigurationParams(items))
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

    def _answer_again(self) -> None:
        """Answer everything under other settings."""
        can = self._session.client
        self._session.refresh()
        self._publisher.again()
        if can.refresh_hints:
            self._server.workspace_inlay_hint_refresh(None)
        if can.refresh_lenses:
            self._server.workspace_code_lens_refresh(None)
        self._follow_scope()

    @property
    def _wanted(self) -> str:
        """Which files the settings want to be checked."""
        return self._session.configuration.general.scope

    def _follow_scope(self) -> None:
        """Scan the workspace if the settings want that and it was not done."""
        if self._wanted == "workspace" and self._scope != self._wanted:
            self._tasks.keep(asyncio.ensure_future(self._scanner.run()))
        self._scope = self._wanted

    # Files

    def watch_imports(self, program: Program) -> None:
        """Hear of the folders that imports go through: of one that is moved, editors often tell alone, without its files."""
        found = program.analysis.outcome.resolved if program.analysis is not None else {}
        names = {part for module, _, _ in found for part in module.split(".") if part}
        names |= {os.path.basename(os.path.dirname(path)) for path in found.values() if path}
        new = sorted(names - self._folders)[: MOST_FOLDERS - len(self._folders)]
        if not new:
            return
        self._folders.update(new)
        if self._session.client.watches:
            watchers = [
                lsp.FileSystemWatcher(glob_pattern=f"**/{name}") for name in new if name.isidentifier()
            ]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            name = f"gradguard-folders-{len(self._folders)}"
            wanted = [lsp.Registration(name, lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)]
            self._tasks.keep(asyncio.ensure_future(self._register(wanted)))

    def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        self._session.saved(params.text_document.uri)

    def _notebook_saved(self, params: lsp.DidSaveNotebookDocumentParams) -> None:
        self._session.notebook_saved(params.notebook_document.uri)

    def _files_changed(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        session = self._session
        paths = {path_of(each.uri): each.type for each in params.changes}
        if PYPROJECT in {os.path.basename(path) for path in paths}:
            session.configuration.forget()
            self._answer_again()
            folders = {os.path.dirname(path) for path in paths if os.path.basename(path) == PYPROJECT}
            self._look_at_settings(sorted(folders))
            return
        if any(path.endswith(LAST_RUN) for path in paths):
            session.lookout.runs()
        opened = session.documents.texts
        touched = {path for path in paths if path.endswith(".py") and path not in opened}
        appeared = any(
            kind != lsp.FileChangeType.Changed
            and (path.endswith(".py") or os.path.basename(path) in self._folders)
            for path, kind in paths.items()
        )
        if appeared:  # an import may lead elsewhere now
            session.refresh()
        elif touched:
            session.refresh(each for path in touched for each in session.programs.readers(path))
        self._scanner.changed(touched)


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
