"""Lets jupyter-lsp start the server by a configuration and ask it about a program, as JupyterLab does.

    python jupyter_session.py CONFIGURATION.json

Runs where jupyter-lsp is installed, which is not where the tests run. Prints the codes of the findings.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from jupyter_lsp import LanguageServerManager
from tornado.websocket import WebSocketHandler
from traitlets.config import Config

PROGRAM = "import torch\n\nw = torch.rand(3, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()\n"
DOCUMENT = {"uri": "file:///study.ipynb", "languageId": "python", "version": 1, "text": PROGRAM}


class Page(WebSocketHandler):
    """Stands in for the connection to the page in the browser."""

    def __init__(self) -> None:
        self.language_server = "gradguard"
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write_message(self, message: str) -> None:
        self.received.put_nowait(json.loads(message))

    async def get(self, **wanted: object) -> dict[str, Any]:
        """The next message with these values; others are left out."""
        while True:
            message = await asyncio.wait_for(self.received.get(), 120)
            if wanted.items() <= message.items():
                return message


async def main(configuration: Path) -> None:
    manager = LanguageServerManager(config=Config(json.loads(configuration.read_text("utf-8"))))
    manager.autodetect = False
    manager.initialize()
    page = Page()
    manager.subscribe(page)

    async def send(**message: object) -> None:
        await manager.on_client_message(json.dumps({"jsonrpc": "2.0", **message}), page)

    try:
        capabilities = {"textDocument": {"publishDiagnostics": {}}}
        await send(
            id=1,
            method="initialize",
            params={"processId": None, "rootUri": None, "capabilities": capabilities},
        )
        answer = await page.get(id=1)
        print(answer["result"]["serverInfo"]["name"])
        await send(method="initialized", params={})
        await send(method="textDocument/didOpen", params={"textDocument": DOCUMENT})
        published = await page.get(method="textDocument/publishDiagnostics")
        for each in published["params"]["diagnostics"]:
            print(f"{each['code']} in line {each['range']['start']['line'] + 1}")
    finally:
        for session in manager.sessions.values():
            session.stop()


asyncio.run(main(Path(sys.argv[1])))
