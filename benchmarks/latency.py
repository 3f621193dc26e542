"""How long an editor waits: typing in training files of 300, 1,000 and 3,000 lines, over stdio.

    python benchmarks/latency.py [--keys N] [--json FILE]

Each keystroke is one `didChange`; the time counts from sending it to the diagnostics for that very version.
Typed is what people type (names, brackets that stay open for a while, new lines), inside a function and at the
top level, then deleted again. Times are wall time, so other work on the machine is in them; the rows marked `cpu`
are what the server's threads computed (from /proc), which a busy machine hardly changes.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from latency_corpus import training_file

ROOT = pathlib.Path(__file__).parents[1]
TYPED = '        scaled = torch.exp(h * self.scale[0])\n        print(f"mean {scaled.mean().item()}")\n        scaled.add_(1)\n'
TYPED_FLAT = "warm = torch.randn(3, requires_grad=True)\nfor step in range(10):\n    warm.grad = None\n"
BUDGETS = {300: (25, 50), 1000: (25, 50), 3000: (None, 120)}
"""Lines: (median, p95) in milliseconds."""


class Client:
    """As small a client as measures nothing but the server."""

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


Times = list[tuple[float, float]]
"""Wall and CPU milliseconds."""


def typing(client: Client, uri: str, text: str, keys: int) -> Times:
    """Milliseconds for each keystroke."""
    version = 1
    times: Times = []
    lines = text.split("\n")
    inside = (
        next(i for i, line in enumerate(lines) if i > len(lines) // 2 and line.startswith("        return "))
        - 1
    )
    flat = next(i for i, line in enumerate(lines) if i > len(lines) // 2 and line == "") + 1
    while len(times) < keys:
        for line, typed in ((inside, TYPED), (flat, TYPED_FLAT)):
            version = (
                key(client, uri, version, line, 0, line, 0, "\n", times) if typed is TYPED_FLAT else version
            )
            row, column = line, 0
            for char in typed:
                version = key(client, uri, version, row, column, row, column, char, times)
                row, column = (row + 1, 0) if char == "\n" else (row, column + 1)
            end = row + (1 if typed is TYPED_FLAT else 0)
            version = key(client, uri, version, line, 0, end, 0, "", times)
    return times


def key(
    client: Client,
    uri: str,
    version: int,
    line: int,
    column: int,
    end_line: int,
    end: int,
    text: str,
    times: Times,
) -> int:
    """Replace a range, wait for its diagnostics, note the milliseconds; the new version."""
    version += 1
    where = {"start": {"line": line, "character": column}, "end": {"line": end_line, "character": end}}
    before, start = client.cpu(), time.perf_counter()
    client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"range": where, "text": text}],
        },
    )
    client.diagnostics(uri, version)
    wall = (time.perf_counter() - start) * 1000
    times.append((wall, client.cpu() - before))
    return version


def questions(client: Client, uri: str, text: str, method: str, count: int = 40) -> list[float]:
    """Milliseconds for hovers or code actions all over a file."""
    times = []
    lines = text.split("\n")
    spots = [(i, len(line) - len(line.lstrip()) + 2) for i, line in enumerate(lines) if line.strip()]
    hot = [i for i, line in enumerate(lines) if line.strip() == "h += 1"]
    chosen = [*spots[:: max(1, len(spots) // count)], *((i, 9) for i in hot)]
    for line, character in chosen:
        position = {"line": line, "character": character}
        params: dict[str, Any] = {"textDocument": {"uri": uri}}
        if method == "textDocument/hover":
            params["position"] = position
        else:
            params |= {"range": {"start": position, "end": position}, "context": {"diagnostics": []}}
        start = time.perf_counter()
        client.request(method, params)
        times.append((time.perf_counter() - start) * 1000)
    return times


def spread(times: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile, maximum."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], ordered[-1]


def main() -> int:
    """Measure and print; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keys", type=int, default=400, help="keystrokes for each file (default: %(default)s)"
    )
    parser.add_argument("--json", type=pathlib.Path, help="also write the numbers here")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def row(what: str, median: float, p95: float, worst: float, budget: tuple[float | None, float]) -> None:
        met = p95 <= budget[1] and (budget[0] is None or median <= budget[0])
        limits = f"{budget[0] or '-':>6} {budget[1]:>6}"
        print(f"{what:<38} {median:>8.1f} {p95:>8.1f} {worst:>8.1f}   {limits}   {'ok' if met else 'MISSED'}")
        rows.append({"what": what, "median": median, "p95": p95, "max": worst, "budget": budget, "met": met})

    print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; milliseconds")
    print(f"{'':<38} {'median':>8} {'p95':>8} {'max':>8}   budget median/p95")
    ready = []
    for _ in range(5):
        client = Client()
        ready.append(client.initialize() * 1000)
        client.end()
    row("start to initialized", *spread(ready), (None, 1500))
    for lines, budget in BUDGETS.items():
        client = Client()
        client.initialize()
        text = training_file(lines)
        uri = f"file:///nowhere/train{lines}.py"
        first = client.open(uri, text) * 1000
        row(f"{text.count(chr(10)):,} lines: first diagnostics", first, first, first, (None, 3000))
        typed = typing(client, uri, text, options.keys)
        name = f"{text.count(chr(10)):,} lines: keystroke"
        row(name, *spread([wall for wall, _ in typed]), budget)
        row(f"{name}, cpu", *spread([cpu for _, cpu in typed]), budget)
        row(
            f"{text.count(chr(10)):,} lines: hover",
            *spread(questions(client, uri, text, "textDocument/hover")),
            (None, 10),
        )
        actions = questions(client, uri, text, "textDocument/codeAction")
        row(f"{text.count(chr(10)):,} lines: code actions", *spread(actions), (None, 30))
        client.end()
    client = Client()
    client.initialize()
    for number in range(10):
        client.open(f"file:///nowhere/open{number}.py", training_file(1000, number))
    memory = client.memory()
    row("MB with ten 1,000-line files open", memory, memory, memory, (None, 150))
    client.end()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(each["met"] for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
