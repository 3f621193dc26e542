"""The language server: `gradguard server`. Puts its parts together, each of which is given what it needs."""

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
from gradguard.check.parsing import Problem
from gradguard.ide.analysis import Analyser, analyse
from gradguard.lsp import commands, features, logs
from gradguard.lsp.lifecycle import Lifecycle
from gradguard.lsp.notices import Notices
from gradguard.lsp.programs import Program
from gradguard.lsp.protocol import StrictProtocol
from gradguard.lsp.publish import Publisher
from gradguard.lsp.scanner import Scanner
from gradguard.lsp.session import Session
from gradguard.lsp.tasks import Tasks
from gradguard.lsp.transport import Outlet, RawReader, Writer, accept_one, read_in_thread, standard_streams
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
PROBLEMS = "$/gradguard/settingsProblems"
"""Tells a client whose `initializationOptions` have `"status": true` all that is wrong in settings, as `{"problems": [text, ...]}`."""
SWITCH_SECONDS = 0.0005
"""How long the analysing thread may hold the interpreter while the loop wants it."""
COLLECT_AFTER = 100_000, 10, 20
"""When garbage is collected in the midst of work, which is for those who never pause: the worker does it in pauses."""


class Server(LanguageServer):
    """pygls' server with this project's protocol, session and features."""

    protocol: StrictProtocol

    def __init__(self, analyser: Analyser = analyse, log_file: str = "") -> None:
        super().__init__(
            "gradguard",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=StrictProtocol,
        )
        self.code = 1
        self._ended: asyncio.Event | None = None
        self.notices = Notices(self, lambda: self.session.wording, log_file)
        self.session = Session(
            analyser,
            answered=self._answered,
            gone=lambda program: self.publisher.gone(program),
            crashed=self.notices.crashed,
            trace=self.trace,
            wrong=self._wrong,
            hangs=self.notices.hangs,
            answers=self.notices.answers,
            refused=self.notices.refused,
        )
        tasks = Tasks()
        self.publisher = Publisher(self, self.session)
        self.scanner = Scanner(self, self.session, self.publisher, tasks)
        self.lifecycle = Lifecycle(
            self, self.session, self.publisher, self.scanner, tasks, gone=lambda: self.stop(None)
        )
        self.lifecycle.register()
        features.register(self, self.session, self.publisher)
        commands.register(self, self.session, self.publisher, self.scanner)

    def serve(self, source: RawReader, writer: Writer) -> int:
        """Answer one client to its end; the exit code."""
        return asyncio.run(self._serve(source, writer))

    async def _serve(self, source: RawReader, writer: Writer) -> int:
        ended = self.attach(writer)
        loop = asyncio.get_running_loop()
        read_in_thread(source, loop, self.protocol.receive, lambda: self.stop(None))
        await ended.wait()
        self.session.stop()
        self.scanner.stop()
        writer.close()
        return self.code

    def attach(self, writer: Outlet, *, headers: bool = True) -> asyncio.Event:
        """Have a client to talk to, whose messages are given to `protocol.receive`. What is given back is set at its end.

        headers: as the protocol asks for on a stream of bytes, which does not tell where a message ends.
        """
        self._ended = asyncio.Event()
        self.protocol.set_writer(writer, include_headers=headers)
        return self._ended

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

    def trace(self, message: str, verbose: str | None = None) -> None:
        """Tell the client what happens, if it asked for it."""
        if self.protocol.trace == lsp.TraceValue.Off:
            return
        details = verbose if self.protocol.trace == lsp.TraceValue.Verbose else None
        self.log_trace(lsp.LogTraceParams(message=message, verbose=details))

    def _answered(self, program: Program) -> None:
        self.publisher.answered(program)
        self.lifecycle.watch_imports(program)

    def _wrong(self, where: str, problems: Sequence[Problem]) -> None:
        """Settings are wrong, or are right again: told in words, at their places, and to the status of an editor that has one."""
        self.notices.wrong(where, problems)
        if not self.reachable:
            return
        self.publisher.settings(where, problems)
        if self.session.client.shows_status:
            found = [
                str(each) for several in self.session.configuration.problems.values() for each in several
            ]
            self.protocol.notify(PROBLEMS, {"problems": found})

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
    server = Server(analyser, arguments.log_file or "")
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
