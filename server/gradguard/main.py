"""The `gradguard` command. Every command loads only what it needs, so that `check` starts at once."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence

from gradguard.cli.stderr import complain, tell
from gradguard.source.printable import printable_lines

CANNOT = 2
INTERRUPTED = 130

FLEET_NEEDS = ("ray", "pyarrow", "fsspec")
"""Modules that the extra `fleet` installs."""

MCP_NEEDS = ("mcp",)
"""Modules that the extra `mcp` installs."""

TRACEBACK = "GRADGUARD_TRACEBACK"
"""Environment variable that shows where an internal error happened."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _make_printable()
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        tell("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; Python must not complain of it at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        tell(f"internal error: {type(error).__name__}: {error}")
        if TRACEBACK in os.environ:
            print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)
        else:
            tell(f"please report it, with what {TRACEBACK}=1 shows")
        return CANNOT


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["fleet"] and any(importlib.util.find_spec(name) is None for name in FLEET_NEEDS):
        complain(
            f"`gradguard fleet` runs on Ray Data, which {sys.executable} has not; "
            "install it with: pip install 'gradguard[fleet]'"
        )
        return CANNOT
    if words[:1] == ["mcp"] and any(importlib.util.find_spec(name) is None for name in MCP_NEEDS):
        complain(
            f"`gradguard mcp` needs the package mcp, which {sys.executable} has not; "
            "install it with: pip install 'gradguard[mcp]'"
        )
        return CANNOT
    # These four have options of their own, which are not to be read here.
    if words[:1] == ["run"]:
        from gradguard.runtime.options import options_of

        options_of(words[1:])  # `--help` needs no torch
        if not _has_torch("run"):
            return CANNOT
        from gradguard.cli.language import worded
        from gradguard.runtime.run import main as run

        return int(run(words[1:], worded) or 0)
    if words[:1] == ["server"]:
        from gradguard.lsp.server import main as server

        return int(server(words[1:]) or 0)
    if words[:1] == ["fleet"]:
        from gradguard.fleet.command import main as fleet

        return fleet(words[1:])

    if words[:1] == ["mcp"]:
        from gradguard.assistants.server import main as assistants

        return assistants(words[1:])

    from gradguard.cli.arguments import parser
    from gradguard.report.words import language

    # What follows `--` is for the script that is verified.
    given = words.index("--") if words[:1] == ["verify"] and "--" in words else len(words)
    arguments = parser(language(words[:given])).parse_args(words[:given])
    arguments.arguments = words[given + 1 :]
    if arguments.command == "check":
        from gradguard.cli import check

        return check.run(arguments)
    if arguments.command == "explain":
        from gradguard.cli import explain

        return explain.run(arguments)
    if arguments.command == "verify":
        if not _has_torch("verify"):
            return CANNOT
        from gradguard.cli import verify

        return verify.run(arguments)
    from gradguard.cli import ops

    return ops.run(arguments)


def _has_torch(command: str) -> bool:
    """Whether a command can run the user's code; says so where it cannot."""
    if importlib.util.find_spec("torch") is not None:
        return True
    complain(
        f"`gradguard {command}` runs your code with torch, and {sys.executable} has no torch; "
        "install gradguard into the environment that has it"
    )
    return False


def _make_printable() -> None:
    """A message with a character that the terminal cannot show must not end the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
