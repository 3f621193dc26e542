"""What the server does with messages that are wrong, early or late, and how it ends."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.lsp.editor import ROOT, TOY, environment
from tests.lsp.raw import Raw

URI = "file:///nowhere/raw.py"
SHARE = int(os.environ.get("GRADGUARD_FUZZ", "1"))
"""Multiplies the length of random tests."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Raw]:
    raw = Raw()
    raw.initialize()
    yield raw
    raw.end()


@pytest.fixture
def raw() -> Iterator[Raw]:
    started = Raw()
    yield started
    started.end()


def test_requests_before_initialize_are_refused_and_notifications_dropped(raw: Raw) -> None:
    raw.open("import torch\nboom(x)\n")
    assert raw.request("textDocument/hover", {})["error"]["code"] == -32002
    raw.initialize()
    assert (
        raw.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["error"]["code"]
        == -32600
    )
    assert raw.alive()


def test_requests_after_shutdown_are_refused_and_exit_is_in_order(raw: Raw) -> None:
    raw.initialize()
    assert raw.request("shutdown")["result"] is None
    assert raw.request("textDocument/hover", {})["error"]["code"] == -32600
    raw.notify("exit")
    assert raw.exit_code() == 0


def test_exit_without_shutdown_is_a_failure(raw: Raw) -> None:
    raw.initialize()
    raw.notify("exit")
    assert raw.exit_code() == 1


def test_closed_stdin_ends_the_process(raw: Raw) -> None:
    raw.initialize()
    raw.open("import torch\nslow(60)\n")
    time.sleep(0.3)
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    assert raw.exit_code() == 1


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_death_of_the_client_ends_the_process() -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    raw = Raw()
    try:
        raw.initialize(processId=parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert raw.exit_code() == 1
    finally:
        parent.kill()
        raw.end()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": 5}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {"position": []}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', -32601),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "workspace/executeCommand", "params": {"command": "no.such"}}',
            -32602,
        ),
    ],
)
def test_wrong_messages_get_an_error_and_the_server_goes_on(shared: Raw, body: bytes, code: int) -> None:
    shared.body(body)
    answer = shared.wait(lambda each: "error" in each)
    assert answer["error"]["code"] == code
    assert shared.alive()


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Type: text/plain\r\n\r\n",
        b"garbage\r\n\r\n",
        b'content-length: 55\r\nContent-Type: x\r\n\r\n{"jsonrpc": "2.0", "method": "$/whatever", "params": 1}',
    ],
)
def test_odd_headers_cost_no_message(shared: Raw, data: bytes) -> None:
    shared.write(data)
    assert shared.alive()


def test_notifications_about_unknown_documents_are_harmless(shared: Raw) -> None:
    shared.notify("textDocument/didClose", {"textDocument": {"uri": "file:///no"}})
    shared.notify("textDocument/didSave", {"textDocument": {"uri": "file:///no"}})
    shared.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": "file:///no", "version": 2}, "contentChanges": [{"text": ""}]},
    )
    shared.notify(
        "notebookDocument/didChange", {"notebookDocument": {"uri": "file:///no", "version": 2}, "change": {}}
    )
    shared.notify("$/cancelRequest", {"id": "never-sent"})
    shared.notify("window/workDoneProgress/cancel", {"token": "never-begun"})
    assert shared.alive()
    assert not any(each.get("method") == "window/showMessage" for each in shared.kept)


def test_a_thousand_random_messages(shared: Raw) -> None:
    rng = random.Random(7)
    methods = [
        "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/hover",
        "textDocument/codeAction", "codeAction/resolve", "textDocument/inlayHint", "textDocument/codeLens",
        "textDocument/diagnostic", "workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles",
        "workspace/executeCommand", "notebookDocument/didOpen", "notebookDocument/didChange", "$/cancelRequest",
        "workspace/didChangeWorkspaceFolders", "$/setTrace", "textDocument/didSave", "no/such",
    ]  # fmt: skip

    def value(depth: int = 0) -> object:
        kind = rng.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return rng.choice([None, True, False])
        if kind == 1:
            return rng.choice([0, 1, -1, 2**31, 1.5, 10**30])
        if kind < 5:
            return rng.choice(
                [URI, "", "python", "import torch\nboom(x)\n", "\ud800", "off", "x" * 1000, "é😋\u2028"]
            )
        if kind == 5:
            return rng.choice([{"line": 0, "character": 0}, {"uri": URI}, {"uri": URI, "version": 3}])
        if kind == 6:
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        keys = [
            "textDocument", "position", "range", "start", "end", "line", "character", "uri", "version", "text",
            "contentChanges", "languageId", "context", "diagnostics", "settings", "changes", "type", "command",
            "arguments", "cells", "notebookDocument", "cellTextDocuments", "id", "title", "data", "edit", "value", "event",
        ]  # fmt: skip
        return {rng.choice(keys): value(depth + 1) for _ in range(rng.randrange(6))}

    requests = 0
    for number in range(1000 * SHARE):
        message: dict[str, object] = {"jsonrpc": "2.0", "method": rng.choice(methods), "params": value()}
        if rng.random() < 0.5:
            message["id"] = f"fuzz-{number}"
            requests += 1
        shared.send(message)
    for _ in range(requests):
        shared.wait(lambda each: str(each.get("id", "")).startswith("fuzz-") and "method" not in each)
    assert shared.alive()
    shared.open("import torch\nboom(x)\n", "file:///nowhere/after.py")
    assert len(shared.diagnostics("file:///nowhere/after.py")) == 1


def test_tcp(tmp_path: object) -> None:
    process = subprocess.Popen(
        [*TOY, "--tcp", "--port", "0"], stderr=subprocess.PIPE, text=True, env=environment(), cwd=str(ROOT)
    )
    try:
        assert process.stderr is not None
        found = re.match(r"listening on ([\d.]+):(\d+)", process.stderr.readline())
        assert found
        with socket.create_connection((found[1], int(found[2])), timeout=20) as connection:
            body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'
            connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answer = b""
            while b'"capabilities"' not in answer:
                answer += connection.recv(65536)
        assert process.wait(20) == 1
    finally:
        process.kill()
        process.wait()


def test_a_taken_port_is_said_plainly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run(
            [*TOY, "--tcp", "--port", str(port)],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=30,
        )
    assert result.returncode == 2
    assert f"127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr


def test_each_line_of_the_log_goes_one_way(raw: Raw) -> None:
    """Editors show what comes on stderr beside what the protocol brings: a line that took both ways is there twice."""
    raw.initialize()
    raw.open("import torch\ncrash()\n")
    told = raw.wait(lambda each: each.get("method") == "window/logMessage" and each["params"]["type"] == 1)
    assert "asked to crash" in told["params"]["message"]
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    assert raw.exit_code() == 1
    raw.reader.join(20)
    assert b"asked to crash" not in raw.stderr
    assert b"the client is gone" in raw.stderr


def test_what_code_prints_does_not_reach_the_client(shared: Raw) -> None:
    shared.open("import torch\nboom(x)\n", "file:///nowhere/printing.py")
    assert shared.diagnostics("file:///nowhere/printing.py")
    assert b"a stray line" in shared.stderr
