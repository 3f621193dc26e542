"""`gradguard mcp` asked by the official client, as an assistant asks."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.running import RAISES, SERVER

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def assistant(folder: Path, *words: str) -> AsyncIterator[ClientSession]:
    """A session with a server that was started in a folder."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gradguard", "mcp", *words],
        cwd=folder,
        env={"PYTHONPATH": str(SERVER), "PATH": "/usr/bin:/bin"},
    )
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


async def called(session: ClientSession, tool: str, **arguments: Any) -> Any:
    """What a tool gives; its words where it refused."""
    found = await session.call_tool(tool, arguments)
    if found.isError:
        return "refused: " + "".join(getattr(each, "text", "") for each in found.content)
    given = found.structuredContent
    assert given is not None
    return given["result"] if set(given) == {"result"} else given


async def test_it_checks_explains_and_offers_repairs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAISES)
    async with assistant(tmp_path) as session:
        tools = {each.name for each in (await session.list_tools()).tools}
        assert tools == {
            "check_files",
            "check_text",
            "fixes",
            "explain",
        }  # nothing runs code unless it is allowed
        report = await called(session, "check_files", paths=["train.py"])
        (finding,) = report["findings"]
        assert (finding["file"], finding["line"], finding["code"]) == ("train.py", 5, "GG101")
        text = RAISES.replace("y.add_(1)", "y = y + 1")
        assert (await called(session, "check_text", text=text))["findings"] == []
        assert len((await called(session, "check_text", text=RAISES))["findings"]) == 1
        (first, *_) = await called(session, "fixes", path="train.py", line=5)
        assert first["fix"]["applicability"] == "safe"
        assert first["fix"]["edits"]
        assert await called(session, "fixes", path="train.py", line=1) == []
        assert "# GG101" in await called(session, "explain", what="GG101")
        assert "refused: " in await called(session, "explain", what="no-such-rule")
        assert "no such file" in json.dumps(await called(session, "check_files", paths=["--help"]))


async def test_a_rewrite_is_verified_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(
        "import torch\n\n\n# gradguard: inputs x=randn(4, 3, requires_grad=True)\n"
        "def block(x):\n    y = x * 2\n    y.add_(1)\n    return y\n"
    )
    async with assistant(tmp_path, "--allow-run") as session:
        said = await called(session, "verify", path="block.py", function="block")
        assert "same values" in said
