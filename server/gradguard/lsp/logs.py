"""Where the log goes: to the client while it is there, else to stderr, and always to a file if asked for.

Never to both: editors show what comes on stderr in the same place as what the protocol brings.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Protocol

from lsprotocol import types as lsp

from gradguard.source.printable import printable, printable_lines

LEVELS = ("off", "error", "warn", "warning", "info", "debug", "trace")

_NUMBERS = {
    "off": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
_ROOT = logging.getLogger("gradguard")


class LogWindow(Protocol):
    """The client, as far as it shows what is logged."""

    @property
    def reachable(self) -> bool:
        """Whether it can be told anything."""

    def window_log_message(self, params: lsp.LogMessageParams) -> None: ...


class _Format(logging.Formatter):
    """A record may quote anything, and a terminal may show it."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


_FORMAT = _Format("%(asctime)s %(levelname)s %(name)s: %(message)s")


def to_stderr(level: str, file: str | None = None) -> None:
    """Log to stderr, and to a file. A file that cannot be written costs a line on stderr, nothing else."""
    number = _NUMBERS[level]
    _ROOT.setLevel(number)
    _ROOT.propagate = False
    _ROOT.handlers.clear()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if file:
        try:
            handlers.append(logging.FileHandler(file, encoding="utf-8"))
        except OSError as error:
            print(printable(f"gradguard server: no log in {file}: {error.strerror}"), file=sys.stderr)
    for handler in handlers:
        handler.setFormatter(_FORMAT)
        _ROOT.addHandler(handler)
    library = logging.getLogger("pygls")
    # What pygls calls errors is mostly the client's doing, and told to it in the answer.
    library.setLevel(logging.DEBUG if level == "trace" else logging.CRITICAL)
    library.handlers = handlers
    library.propagate = False


def to_client(client: LogWindow) -> None:
    """Send what is logged to the client as `window/logMessage`; to stderr only where that cannot be."""
    stderr = next(each for each in _ROOT.handlers if not isinstance(each, logging.FileHandler))
    _ROOT.removeHandler(stderr)
    _ROOT.addHandler(_ClientHandler(client, stderr))


class _ClientHandler(logging.Handler):
    """Sends records on the loop's thread, whatever thread they come from."""

    def __init__(self, client: LogWindow, otherwise: logging.Handler) -> None:
        super().__init__()
        self.setFormatter(_Format())
        self._client = client
        self._otherwise = otherwise
        self._loop: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        client = self._client
        if not client.reachable:
            self._otherwise.handle(record)
            return
        params = lsp.LogMessageParams(type=_type(record.levelno), message=self.format(record))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(client.window_log_message, params)
            else:
                self._otherwise.handle(record)
            return
        self._loop = loop
        client.window_log_message(params)


def _type(level: int) -> lsp.MessageType:
    if level >= logging.ERROR:
        return lsp.MessageType.Error
    if level >= logging.WARNING:
        return lsp.MessageType.Warning
    return lsp.MessageType.Info if level >= logging.INFO else lsp.MessageType.Log
