"""A client that sends bytes, for everything a well-behaved one does not."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from tests.lsp.editor import ROOT, TOY, environment

PATIENCE = 120.0


class Raw:
    """A server process and its two ends. `messages` are the bodies that came back, parsed."""

    def __init__(
        self,
        command: Sequence[str] = TOY,
        log: bool = False,
        **process: Any,
    ) -> None:
        """process: in the place of how the process is usually started, as for `Popen`."""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **{"env": environment(), "cwd": str(ROOT), **process},
        )
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self.kept: list[dict[str, Any]] = []
        self.stderr = bytearray()
        self._numbers = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.reader = threading.Thread(target=self._drain, daemon=True)
        """Of what comes on stderr."""
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = self.process.stdout.read(length)
            if not body:
                return
            self.messages.put(json.loads(body))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr.extend(line)

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def body(self, body: bytes) -> None:
        """Send a body under a right header."""
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send(self, message: Any) -> None:
        """Send JSON."""
        self.body(json.dumps(message).encode())

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._numbers += 1
        name = f"r{self._numbers}"
        self.send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        return self.wait(lambda each: each.get("id") == name and "method" not in each)

    def wait(self, wanted: Any) -> dict[str, Any]:
        """The first message, old or new, that is wanted; it is given once."""
        for each in self.kept:
            if wanted(each):
                self.kept.remove(each)
                return each
        while True:
            message = self.messages.get(timeout=PATIENCE)
            if wanted(message):
                return message
            self.kept.append(message)

    def initialize(self, **params: Any) -> dict[str, Any]:
        """Shake hands."""
        answer = self.request(
            "initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}, **params}
        )
        self.notify("initialized", {})
        return answer

    def open(self, text: str, uri: str = "file:///nowhere/raw.py") -> None:
        """Open a document."""
        self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}},
        )

    def diagnostics(
        self, uri: str = "file:///nowhere/raw.py", version: int | None = None
    ) -> list[dict[str, Any]]:
        """The next diagnostics for a document (and version)."""
        message = self.wait(
            lambda each: (
                each.get("method") == "textDocument/publishDiagnostics"
                and each["params"]["uri"] == uri
                and (version is None or each["params"].get("version") == version)
            )
        )
        found: list[dict[str, Any]] = message["params"]["diagnostics"]
        return found

    def alive(self) -> bool:
        """Whether the server still answers."""
        answer = self.request("gradguard/areYouThere")
        return bool(answer["error"]["code"] == -32601)

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        """Whatever state it is in, the process must be gone after this."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
