"""As small a client of the language server as measures nothing but the server, and what an editor types."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
Range = tuple[int, int, int, int]
"""Line and column where it starts, line and column where it ends, from zero."""
Times = list[tuple[float, float]]
"""Wall and CPU milliseconds."""
PARTNERS = {"(": ")", "[": "]", "{": "}", '"': '"'}


class Client:
    """A server over stdio, and what it answers."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradguard", "server", "--log-level", "error"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self.number = 0

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.startswith(b"Content-Length"):
                length = int(line.split()[1])
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = self.receive()
            if wanted(message):
                return message

    def request(self, method: str, params: Any) -> Any:
        self.number += 1
        number = self.number
        self.send({"id": number, "method": method, "params": params})
        return self.until(lambda each: each.get("id") == number).get("result")

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def diagnostics(self, uri: str, version: int) -> list[Any]:
        message = self.until(
            lambda each: (
                each.get("method") == "textDocument/publishDiagnostics"
                and each["params"]["uri"] == uri
                and each["params"].get("version") == version
            )
        )
        found: list[Any] = message["params"]["diagnostics"]
        return found

    def initialize(self) -> float:
        """Seconds from the start of the process to the answer."""
        capabilities = {
            "textDocument": {
                "hover": {"contentFormat": ["markdown"]},
                "codeAction": {
                    "dataSupport": True,
                    "resolveSupport": {"properties": ["edit"]},
                    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
                },
                "publishDiagnostics": {
                    "relatedInformation": True,
                    "codeDescriptionSupport": True,
                    "dataSupport": True,
                },
            }
        }
        self.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities})
        seconds = time.perf_counter() - self.started
        self.notify("initialized", {})
        return seconds

    def open(self, uri: str, text: str) -> float:
        """Seconds to the first diagnostics."""
        start = time.perf_counter()
        self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}},
        )
        self.diagnostics(uri, 1)
        return time.perf_counter() - start

    def change(self, uri: str, version: int, where: Range, text: str) -> None:
        """Tell of one edit: the range is replaced by the text."""
        line, column, end_line, end = where
        span = {
            "start": {"line": line, "character": column},
            "end": {"line": end_line, "character": end},
        }
        self.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"range": span, "text": text}],
            },
        )

    def edit(self, uri: str, version: int, where: Range, text: str) -> tuple[float, float]:
        """Wall and CPU milliseconds from an edit to the diagnostics of that very version."""
        before, start = self.cpu(), time.perf_counter()
        self.change(uri, version, where, text)
        self.diagnostics(uri, version)
        wall = (time.perf_counter() - start) * 1000
        return wall, self.cpu() - before

    def cpu(self) -> float:
        """Milliseconds that the server's threads have computed."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:  # the thread ended
                continue
        return total / 1e6

    def memory(self) -> float:
        """Resident memory in MB."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1000
        return 0.0

    def end(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(10)


def strokes(typed: str, indent: str) -> list[tuple[str, int]]:
    """(inserted text, how far the caret moves) for each key; a partner that is there already is typed over."""
    keys: list[tuple[str, int]] = []
    waiting: list[str] = []
    for char in typed:
        if waiting and char == waiting[-1]:
            waiting.pop()
            keys.append(("", 1))
        elif char == "\n":
            keys.append(("\n" + indent, 1 + len(indent)))
        else:
            partner = PARTNERS.get(char, "")
            waiting += [partner] if partner else []
            keys.append((char + partner, 1))
    return keys


def spread(times: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile, maximum."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], ordered[-1]
