"""A server inside of the test's process, whose steps can be counted: messages in, messages out, no pipes."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gradguard.ide.analysis import Analyser
from gradguard.lsp.server import Server
from tests.lsp.toy_server import toy

PATIENCE = 120.0


class Steps:
    """Counts what Python executes in all threads that were started inside of `watched`."""

    def __init__(self) -> None:
        self.count = 0
        self.on = False
        self._apart = 0

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What this thread calls in here is the test's own and not counted."""
        self._apart = threading.get_ident()
        try:
            yield
        finally:
            self._apart = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Threads started in here can be counted."""
        threading.settrace(self._call)
        try:
            yield
        finally:
            threading.settrace(None)  # type: ignore[arg-type]

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count from nothing what these threads and the calling one execute."""
        before = sys.gettrace()
        self.count, self.on = 0, True
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)
            self.on = False

    def _call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if not self.on or self._apart == threading.get_ident():
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        self.count += self.on
        return self._step


class Inside:
    """The server and what it sent. Everything runs on the loop of the caller."""

    def __init__(self, steps: Steps | None = None, analyser: Analyser = toy) -> None:
        self.steps = steps or Steps()
        self.server = Server(analyser)
        self.server._ended = asyncio.Event()
        self.server.protocol.set_writer(self)
        self.sent: list[dict[str, Any]] = []
        self.passed: list[dict[str, Any]] = []
        """What came before something that was waited for."""
        self.versions: dict[str, int] = {}
        self._requests = 0

    def write(self, data: bytes) -> None:
        """A message of the server."""
        self.sent.append(json.loads(data[data.index(b"\r\n\r\n") :]))

    def close(self) -> None:
        """Nothing more is sent."""

    def answer(self, number: Any) -> None:
        """Answer a request of the server."""
        self._receive({"jsonrpc": "2.0", "id": number, "result": None})

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._receive({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request; its number."""
        self._requests += 1
        self._receive({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        return self._requests

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and wait for its answer."""
        number = self.ask(method, params)
        return await self.wait(lambda each: each.get("id") == number and "method" not in each)

    async def initialize(self, **params: Any) -> None:
        """Shake hands."""
        await self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}, **params})
        self.notify("initialized", {})

    def open(self, uri: str, text: str) -> None:
        """Open a document."""
        self.versions[uri] = 1
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def type(self, uri: str, text: str) -> None:
        """Put a text at the start of a document."""
        start = {"line": 0, "character": 0}
        self.change(uri, {"range": {"start": start, "end": start}, "text": text})

    def replace(self, uri: str, text: str) -> None:
        """Give a document another text."""
        self.change(uri, {"text": text})

    def change(self, uri: str, *changes: Any) -> None:
        """Edit a document."""
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def close_document(self, uri: str) -> None:
        """Close a document."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """What is shown for the current version of a document, once it is."""
        version = self.versions[uri]
        found = await self.wait(
            lambda each: (
                each.get("method") == "textDocument/publishDiagnostics"
                and (each["params"]["uri"], each["params"].get("version")) == (uri, version)
            )
        )
        shown: list[dict[str, Any]] = found["params"]["diagnostics"]
        return shown

    async def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted, those before it are forgotten."""
        for _ in range(int(PATIENCE / 0.002)):
            found = self._take(wanted)
            if found is not None:
                return found
            await asyncio.sleep(0.002)
        raise TimeoutError

    def _take(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        with self.steps.apart():
            return self._first(wanted)

    def _first(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        for number, message in enumerate(self.sent):
            if wanted(message):
                self.passed += self.sent[:number]
                del self.sent[: number + 1]
                return message
        return None

    async def quiet(self) -> None:
        """Wait until everything is answered."""
        for _ in range(int(PATIENCE / 0.002)):
            if self._quiet():
                break
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)

    def _quiet(self) -> bool:
        with self.steps.apart():
            session = self.server.session
            return all(each.fresh for each in session.programs) and not session.worker.waiting

    def _receive(self, message: Any) -> None:
        self.server.protocol.receive(json.dumps(message).encode())
