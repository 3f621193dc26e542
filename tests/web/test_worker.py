"""The server in a worker of a browser gives the answers of any other, without a thread."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from gradguard.lsp import threads
from gradguard.web.worker import start

URI = "vscode-vfs://github/a/model.py"
TEXT = "import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n"
CAPABILITIES = {
    "textDocument": {
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {"relatedInformation": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "workspace": {"workspaceEdit": {"documentChanges": True}},
}
PATIENCE = 120.0


class Client:
    """The other end of the messages. `told` are all that came."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._came = asyncio.Event()
        self._receive = start(self._post, "error")
        self._numbers = 0

    def _post(self, message: str) -> None:
        self.told.append(json.loads(message))
        self._came.set()

    def send(self, **message: Any) -> None:
        self._receive(json.dumps({"jsonrpc": "2.0", **message}))

    async def first(self, **wanted: Any) -> dict[str, Any]:
        """The first message that has these members."""
        while True:
            for each in self.told:
                if wanted.items() <= each.items():
                    return each
            self._came.clear()
            await asyncio.wait_for(self._came.wait(), PATIENCE)

    async def ask(self, method: str, params: Any) -> Any:
        self._numbers += 1
        self.send(id=self._numbers, method=method, params=params)
        answer = await self.first(id=self._numbers)
        assert "error" not in answer, answer
        return answer["result"]


async def conversation(language: str) -> dict[str, Any]:
    """What a client sees of a document: findings, a hover, and the edits of the first quick fix."""
    client = Client()
    await client.ask("initialize", {"processId": None, "capabilities": CAPABILITIES, "locale": language})
    client.send(method="initialized", params={})
    document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
    client.send(method="textDocument/didOpen", params={"textDocument": document})
    found = await client.first(method="textDocument/publishDiagnostics")
    place = {"line": 4, "character": 3}
    about = {"textDocument": {"uri": URI}}
    hover = await client.ask("textDocument/hover", {**about, "position": place})
    here = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    offered = await client.ask("textDocument/codeAction", {**about, **here})
    fixed = await client.ask("codeAction/resolve", offered[0])
    await client.ask("shutdown", None)
    client.send(method="exit")
    return {
        "diagnostics": found["params"]["diagnostics"],
        "hover": hover["contents"]["value"],
        "titles": [each["title"] for each in offered],
        "edit": [each["newText"] for each in fixed["edit"]["documentChanges"][0]["edits"]],
    }


@pytest.mark.parametrize("language", ["en", "ko"])
def test_without_threads_all_is_answered_as_with_them(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    expected = asyncio.run(conversation(language))
    assert expected["edit"] == [" = y.mul"]  # y.mul_(2) becomes y = y.mul(2)
    assert [each["code"] for each in expected["diagnostics"]] == ["GG101"]

    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")  # as in a browser

    monkeypatch.setattr(threads, "there_are", lambda: False)
    monkeypatch.setattr(threading.Thread, "start", none)
    assert asyncio.run(conversation(language)) == expected


def test_of_several_edits_that_wait_only_the_last_is_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "there_are", lambda: False)

    async def typing() -> list[dict[str, Any]]:
        client = Client()
        await client.ask("initialize", {"processId": None, "capabilities": CAPABILITIES})
        client.send(method="initialized", params={})
        document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
        client.send(method="textDocument/didOpen", params={"textDocument": document})
        for version in range(2, 20):
            change = {"text": f"{TEXT}# {version}\n"}
            params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}
            client.send(method="textDocument/didChange", params=params)
        while True:
            told = [
                each["params"]
                for each in client.told
                if each.get("method") == "textDocument/publishDiagnostics"
            ]
            if told and told[-1]["version"] == 19:
                return told
            await asyncio.sleep(0.01)

    assert [each["version"] for each in asyncio.run(asyncio.wait_for(typing(), PATIENCE))] == [19]
