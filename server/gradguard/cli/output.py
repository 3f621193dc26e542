"""Write the outcome of a run in the format that was asked for."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from gradguard.cli.configuration import assumed
from gradguard.cli.language import words
from gradguard.cli.result import Outcome
from gradguard.cli.stderr import complain
from gradguard.disk.reading import Unreadable, decode, read_bytes
from gradguard.disk.writing import replace_file
from gradguard.report.findings import LineOf
from gradguard.source.lines import LineIndex

FORMATS = ("text", "json", "sarif", "github", "gitlab")

OF_SERVICES = ("sarif", "github", "gitlab")
"""Formats that a service reads which shows findings beside the code of a repository."""

_CI = ("CI", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables by which programs know that a build runs them; Azure and TeamCity set their own alone."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file; none where it cannot be read."""

    index: LineIndex

    @classmethod
    def of(cls, path: str, data: bytes | None) -> Lines:
        """Lines of a file, or of these bytes in its place."""
        try:
            text = decode(read_bytes(Path(path)) if data is None else data).text
        except Unreadable:
            text = ""
        return cls(LineIndex(text))

    def line(self, number: int) -> str:
        """Text of a line, from 1."""
        return self.index.line(number)


def write(
    outcome: Outcome, arguments: argparse.Namespace, line_of: LineOf, *, to_stderr: bool = False
) -> None:
    """Write the report to stdout, or to the file given with --output."""
    if arguments.format == "text" and not arguments.output:
        _write_text(outcome, arguments, line_of, to_stderr)
        return
    text = render(outcome, arguments, line_of)
    if arguments.output:
        try:
            replace_file(Path(arguments.output), _encoded(text, arguments.format), project_links=False)
        except OSError as error:
            complain(f"{arguments.output}: {error.strerror}")
            raise SystemExit(2) from None
    else:
        stream = sys.stderr if to_stderr else sys.stdout
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "backslashreplace"))
        stream.flush()


def _encoded(text: str, form: str) -> bytes:
    """Bytes of a file. The name of a file that is no UTF-8 stays as it is in text, and is escaped in JSON."""
    return text.encode("utf-8", "surrogateescape" if form in ("text", "github") else "backslashreplace")


def render(outcome: Outcome, arguments: argparse.Namespace, line_of: LineOf) -> str:
    """The report as text without colours. Of all forms the one asked for is loaded."""
    if arguments.format in OF_SERVICES:
        from gradguard.cli.repository import from_root

        outcome, line_of = from_root(outcome, line_of)
    match arguments.format:
        case "json":
            from gradguard.cli.formats import json

            return json.render(replace(outcome, torch=torch_version(arguments.torch)))
        case "sarif":
            from gradguard.check.catalogue import catalogue
            from gradguard.cli.formats import sarif
            from gradguard.cli.pages import page
            from gradguard.ide.pages import link

            return sarif.render(outcome, line_of, catalogue().rules if outcome.findings else (), page, link)
        case "github":
            from gradguard.cli.formats import github

            return github.render(outcome)
        case "gitlab":
            from gradguard.cli.formats import gitlab

            return gitlab.render(outcome, line_of)
        case _:
            from gradguard.cli.formats import text

            lines = text.render(outcome, line_of, statistics=arguments.statistics, words=words())
            return "".join("".join(piece for piece, _ in line) + "\n" for line in lines)


def torch_version(wanted: str | None) -> str:
    """The release of torch whose table is in use, empty when there is none."""
    from gradguard.ops import table

    try:
        return table.load(assumed(wanted)).version
    except ValueError:
        return ""


def colour_wanted(choice: str, is_terminal: bool) -> bool:
    """Whether to write colours, as `--color` and the usual variables say."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (is_terminal and os.environ.get("TERM") != "dumb")


def terminal_width(stream: IO[str]) -> int | None:
    """Columns of the terminal that is written to; None where nothing shows how wide the reader's is."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def obeyed(stream: IO[str]) -> bool:
    """Whether what is written there is read by a terminal, or by what runs a build, rather than kept as it is."""
    if stream.isatty():
        return True
    try:
        kept = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        kept = True  # it leads to no file of the system
    return not kept and any(os.environ.get(name) for name in _CI)


def _write_text(outcome: Outcome, arguments: argparse.Namespace, line_of: LineOf, to_stderr: bool) -> None:
    from gradguard.cli.formats import text

    stream = sys.stderr if to_stderr else sys.stdout
    lines = text.render(
        outcome, line_of, statistics=arguments.statistics, words=words(), width=terminal_width(stream)
    )
    if not colour_wanted(arguments.color, stream.isatty()):
        _write_plain(lines, to_stderr)
        return
    from rich.console import Console
    from rich.text import Text

    from gradguard.report.pieces import STYLES

    console = Console(file=stream, force_terminal=True, soft_wrap=True, highlight=False)
    for line in lines:
        console.print(Text.assemble(*((piece, STYLES.get(style, "")) for piece, style in line)))


def _write_plain(lines: Iterable[list[tuple[str, str]]], to_stderr: bool) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    stream.flush()
    for line in lines:
        stream.write("".join(piece for piece, _ in line) + "\n")
    stream.flush()
