"""The language server: `gradguard server`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradguard import __version__
from gradguard.ide.analysis import Analyser, analyse
from gradguard.ide.wording import Wording
from gradguard.lsp import commands, features, lifecycle, logs
from gradguard.lsp.notices import Notices
from gradguard.lsp.protocol import Protocol
from gradguard.lsp.publish import Publisher
from gradguard.lsp.scanner import Scanner
from gradguard.lsp.session import Session
from gradguard.lsp.transport import RawReader, Writer, accept_one, read_in_thread, standard_streams
from gradguard.source.printable import printable

log = logging.getLogger(__name__)

NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithCells(
            notebook=kind, cells=[lsp.NotebookCellLanguage(language="python")]
        )
        for kind in ("jupyter-notebook", "interactive")
    ]
)
SWITCH_SECONDS = 0.0005
"""How long the analysing thread may hold the interpreter while the loop wants it."""
COLLECT_AFTER = 100_000, 10, 20
"""When garbage is collected in the midst of work, which is for those who never pause: the worker does it in pauses."""


class Server(LanguageServer):
    """pygls' server with this project's protocol, session and features."""

    protocol: Protocol

    def __init__(self, analyser: Analyser = analyse) -> None:
        super().__init__(
            "gradguard",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=Protocol,
        )
        self.session = Session(
            analyser,
            answered=lambda program: self.publisher.answered(program),
            gone=lambda program: self.publisher.gone(program),
            crashed=lambda path, details: self.notices.crashed(path, details),
            trace=self.trace,
            wrong=lambda where, problems: self.notices.wrong(where, problems),
            hangs=lambda path: self.notices.hangs(path),
            answers=lambda path: self.notices.answers(path),
            refused=lambda path: self.notices.refused(path),
        )
        self.notices = Notices(self)
        self.publisher = Publisher(self)
        self.scanner = Scanner(self)
        self.wording = Wording("en")
        self.code = 1
        self.log_file = ""
        self._ended: asyncio.Event | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._scope = "open"
        lifecycle.register(self)
        features.register(self)
        commands.register(self)

    def serve(self, source: RawReader, writer: Writer) -> int:
        """Answer one client to its end; the exit code."""
        return asyncio.run(self._serve(source, writer))

    async def _serve(self, source: RawReader, writer: Writer) -> int:
        self._ended = asyncio.Event()
        self.protocol.set_writer(writer)
        loop = asyncio.get_running_loop()
        read_in_thread(source, loop, self.protocol.receive, lambda: self.stop(None))
        await self._ended.wait()
        self.session.stop()
        self.scanner.stop()
        writer.close()
        return self.code

    def stop(self, code: int | None) -> None:
        """End the process. None: the client is gone; that is in order after a shutdown request."""
        if self._ended is None or self._ended.is_set():
            return
        self._ended.set()
        if code is None:
            log.info("the client is gone")
            code = 0 if self.protocol.shutting_down else 1
        self.code = code

    @property
    def reachable(self) -> bool:
        """Whether the client can be told anything."""
        return self.protocol.running and self._ended is not None and not self._ended.is_set()

    def begin(self) -> None:
        """`initialize` came: offer what this client can use."""
        if self.publisher.pull:
            whole = self.session.configuration.general.scope == "workspace"
            features.register_pull(self, workspace=whole)

    def ready(self) -> None:
        """`initialized` came, settings are known."""
        self._follow_scope()

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a background task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def settings_changed(self) -> None:
        """Answer everything again under other settings."""
        client = self.session.client
        self.session.refresh()
        self.publisher.again()
        if client.refresh_hints:
            self.workspace_inlay_hint_refresh(None)
        if client.refresh_lenses:
            self.workspace_code_lens_refresh(None)
        self._follow_scope()

    def files_changed(self, paths: set[str]) -> None:
        """Files that are not open changed on disk."""
        self.scanner.changed(paths)

    def _follow_scope(self) -> None:
        """Scan the workspace if the settings want that and it was not done."""
        scope = self.session.configuration.general.scope
        if scope == "workspace" and self._scope != scope:
            self.keep(asyncio.ensure_future(self.scanner.run()))
        self._scope = scope

    def trace(self, message: str, verbose: str | None = None) -> None:
        """Tell the client what happens, if it asked for it."""
        if self.protocol.trace == lsp.TraceValue.Off:
            return
        details = verbose if self.protocol.trace == lsp.TraceValue.Verbose else None
        self.log_trace(lsp.LogTraceParams(message=message, verbose=details))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what went wrong in a handler; pop-ups are for the user's own matters."""
        if not isinstance(error, asyncio.CancelledError):
            log.error("%s", "".join(traceback.format_exception(error)).rstrip())


def main(argv: Sequence[str] | None = None, analyser: Analyser = analyse) -> int:
    """Run the server; the exit code. Raises SystemExit (2) for arguments that cannot be understood."""
    arguments = _parser().parse_args(argv)
    logs.to_stderr(arguments.log_level, arguments.log_file)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECT_AFTER)
    try:
        if arguments.tcp:
            source, writer = accept_one(arguments.host, arguments.port)
        else:
            source, writer = standard_streams()
    except OSError as error:
        words = f"gradguard server: {arguments.host}:{arguments.port}: {error.strerror or error}"
        print(printable(words), file=sys.stderr)
        return 2
    server = Server(analyser)
    server.log_file = arguments.log_file or ""
    logs.to_client(server)
    gc.freeze()
    try:
        code = server.serve(source, writer)
    except KeyboardInterrupt:
        code = 1
    logging.shutdown()
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gradguard server",
        description="Language server, over standard input and output unless --tcp is given.",
    )
    parser.add_argument(
        "--stdio", action="store_true", help="talk over standard input and output (the default)"
    )
    parser.add_argument("--tcp", action="store_true", help="wait for one client on a TCP port")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=2087, help="port to listen on, 0 for any (default: %(default)s)"
    )
    parser.add_argument(
        "--log-level",
        default="info",
        type=str.lower,
        choices=logs.LEVELS,
        help="what is logged (default: %(default)s)",
    )
    parser.add_argument("--log-file", metavar="PATH", help="log to this file as well")
    return parser


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"not a port: {text!r}")
