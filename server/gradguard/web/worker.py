"""The server in a worker of a browser: the same one as on a machine, whose messages go through the worker instead of a pipe.

`client/src/web/worker.ts` starts Python, calls `start`, and hands over each message as text.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from gradguard.ide.analysis import Analyser, analyse
from gradguard.lsp import logs
from gradguard.lsp.server import COLLECT_AFTER, Server


class _Port:
    """Where messages go out, each whole."""

    def __init__(self, post: Callable[[str], object]) -> None:
        self._post = post

    def write(self, data: bytes) -> None:
        self._post(data.decode())

    def close(self) -> None:
        return


def start(
    post: Callable[[str], object], level: str = "info", analyser: Analyser = analyse
) -> Callable[[str], None]:
    """Begin a server whose messages are given to `post` as JSON. Messages for it are given to what comes back.

    Both are called on the thread of a running loop.
    """
    logs.to_stderr(level)
    gc.set_threshold(*COLLECT_AFTER)
    server = Server(analyser)
    logs.to_client(server)
    server.attach(_Port(post), headers=False)
    gc.freeze()

    def receive(message: str) -> None:
        server.protocol.receive(message.encode())

    return receive
