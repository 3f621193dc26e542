"""A server in a hostile workspace answers, whatever is opened and typed, and touches nothing."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.hostile.arena import Arena, limit
from tests.hostile.invariants import nothing_else_changed, nothing_is_left_running, nothing_ran
from tests.hostile.programs import MISTAKE, growing
from tests.hostile.repositories import plant
from tests.hostile.share import seeds
from tests.lsp.raw import Raw

COMMAND = (sys.executable, *(("-P",) if sys.version_info >= (3, 11) else ()), "-m", "gradguard", "server")


@pytest.mark.parametrize("seed", seeds(2, 3_000))
def test_a_hostile_workspace(seed: int, tmp_path: Path) -> None:
    made = plant(Arena(tmp_path), seed, 6, 16)
    arena, choose = made.arena, made.random
    before = arena.snapshot()
    paths = [arena.top / "home" / name[1:] for name in sorted(before) if name.endswith(".py")]
    server = Raw(COMMAND, env=arena.environment, cwd=arena.project, preexec_fn=limit)
    try:
        server.initialize(
            rootUri=arena.project.as_uri(),
            workspaceFolders=[{"uri": arena.project.as_uri(), "name": "project"}],
            initializationOptions={"scope": choose.choice(("open", "workspace"))},
        )
        for number, path in enumerate(paths[:40]):
            text = choose.choice((MISTAKE, growing(choose)))
            uri = path.as_uri()
            server.open(text, uri)
            for version in range(2, 5):
                text = _typed(choose, text)
                server.notify(
                    "textDocument/didChange",
                    {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
                )
            if number % 3 == 0:
                server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        probe = (arena.project / "a-probe-of-its-own.py").as_uri()
        server.open(MISTAKE, probe)
        assert [each["code"] for each in server.diagnostics(probe)] == ["GG101"], made.planted
        assert server.alive()
        assert server.request("shutdown")["result"] is None
        server.notify("exit")
        assert server.exit_code() == 0
        assert b"Traceback" not in server.stderr, server.stderr[-3000:]
        nothing_is_left_running(arena)
        nothing_ran(arena)
        nothing_else_changed(arena, before, frozenset())
    finally:
        server.end()


def _typed(choose: random.Random, text: str) -> str:
    at = choose.randrange(len(text) + 1)
    if choose.random() < 0.4:
        return text[:at] + text[at + choose.randrange(1, 30) :]
    return (
        text[:at]
        + choose.choice(("(", '"""', "\n", "    ", "x.add_(1)\n", "]", "\x00", "\ud83d", "é"))
        + text[at:]
    )
