"""`gradguard mcp`: what an editor shows, for assistants that write code, over standard input and output.

Each tool runs the command of the same meaning in a process of its own and hands on what that says, so that an assistant
reads what people and builds read, and a file that takes long costs its call alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from mcp.server.fastmcp import FastMCP

from gradguard.check.workspace import LONGEST

SECONDS = 300.0
"""That one call may take."""

INSTRUCTIONS = """Finds autograd mistakes in PyTorch code without running it. Check a file after you wrote or changed a training
loop, an autograd Function or an in-place operation. A finding of severity error or warning is to be repaired: `fixes` has the
edits; those that are `safe` keep values and gradients, others may change numbers. `explain` tells why, and what an operation saves."""


class Refused(Exception):
    """Why a tool gives nothing; an assistant reads it."""


def main(argv: Sequence[str]) -> int:
    """Serve one assistant to its end."""
    arguments = _parser().parse_args(argv)
    server(allow_run=arguments.allow_run).run("stdio")
    return 0


def server(*, allow_run: bool = False) -> FastMCP:
    """The server with its tools. allow_run: also one that runs code."""
    served = FastMCP("gradguard", instructions=INSTRUCTIONS)

    @served.tool()
    async def check_files(paths: list[str]) -> dict[str, Any]:
        """Check Python files, notebooks, or folders of them for autograd mistakes. The JSON report of `gradguard check`."""
        return _report(await _command(["check", "--format", "json", "--", *_paths(paths)]))

    @served.tool()
    async def check_text(text: str, filename: str = "text.py") -> dict[str, Any]:
        """Check a text that is not saved. `filename` says where it would lie, which decides on settings and imports."""
        if len(text) > LONGEST:
            raise Refused(f"longer than {LONGEST:,} characters")
        words = ["check", "--format", "json", f"--stdin-filename={filename}", "-"]
        return _report(await _command(words, text))

    @served.tool()
    async def fixes(path: str, line: int = 0) -> list[dict[str, Any]]:
        """The repairs that are offered for a file, or for the findings on one line of it, each with its edits.

        Lines and columns count from 1, columns in code points; `end_column` is behind the last character.
        """
        report = _report(await _command(["check", "--format", "json", "--", *_paths([path])]))
        return [
            {key: finding[key] for key in ("file", "line", "code", "message")} | {"fix": fix}
            for finding in report["findings"]
            if not line or finding["line"] == line
            for fix in finding["fixes"]
        ]

    @served.tool()
    async def explain(what: str) -> str:
        """The page of a rule (`GG101`, `inplace-on-saved-tensor`), or what a torch operation saves for backward (`torch.softmax`)."""
        if what.startswith("-"):
            raise Refused(f'"{what}" is neither a rule nor a torch operation')
        return (await _command(["explain", what]))[0]

    if allow_run:

        @served.tool()
        async def verify(path: str, function: str = "", against: str = "") -> str:
            """Run a function with and without its in-place writes in real torch, and compare values and gradients.

            With `against`, the same function of another file is what it is compared with. This runs the code.
            """
            what = f"{_paths([path])[0]}::{function}" if function else _paths([path])[0]
            out, code = await _command(
                ["verify", *(["--against", *_paths([against])] if against else []), what]
            )
            return out + ("" if code == 0 else "\nThe two are not the same.")

    return served


async def _command(words: list[str], text: str | None = None) -> tuple[str, int]:
    """What a command prints, and its exit code. Raises Refused where it could not be done."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P" if sys.version_info >= (3, 11) else "-u",
        "-m",
        "gradguard",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"},
    )
    try:
        out, complaints = await asyncio.wait_for(
            process.communicate((text or "").encode("utf-8", "surrogatepass")), SECONDS
        )
    except asyncio.TimeoutError:
        raise Refused(f"not done after {SECONDS:.0f} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
    said = out.decode("utf-8", "replace")
    assert process.returncode is not None
    if not said or (process.returncode not in (0, 1) and words[0] != "check"):
        raise Refused(complaints.decode("utf-8", "replace").strip() or "nothing was said")
    return said, process.returncode


def _report(done: tuple[str, int]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(done[0])
    return report


def _paths(paths: Sequence[str]) -> list[str]:
    """Paths that no command takes for an option."""
    return [path if os.path.isabs(path) else os.path.join(".", path) for path in paths]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gradguard mcp",
        description="Serve assistants that write code over the Model Context Protocol, on standard input and output.",
    )
    parser.add_argument(
        "--allow-run",
        action="store_true",
        help="also offer `verify`, which runs the code it is given with the torch of this Python",
    )
    return parser
