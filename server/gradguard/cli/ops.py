"""`gradguard ops`: search the table of what torch operations save, alias, write and read."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from gradguard.check.parsing import version_problem
from gradguard.cli.output import colour_wanted
from gradguard.ops import table
from gradguard.ops.render import Line, matching, render_ops
from gradguard.ops.table import Table

COLUMNS = (
    ("operation", "name"),
    ("saves", "saves"),
    ("shares memory", "views"),
    ("writes", "writes"),
    ("waits for the device", "reads"),
    ("gradient", "formula"),
)
"""Heading and field of `Line`."""

WIDEST = 40
"""Characters of a cell that others are lined up behind."""


def run(arguments: argparse.Namespace) -> int:
    """Print the matching rows and return the exit code: 0, 1 when there are none, 2 for a wrong request."""
    if arguments.torch and (problem := version_problem(arguments.torch)):
        print(f"gradguard: error: --torch: {problem}", file=sys.stderr)
        return 2
    known = table.load(None if arguments.torch in (None, "auto") else arguments.torch)
    pattern = arguments.pattern or ""
    if arguments.format == "json":
        print(_json(known, pattern))
        return 0
    lines = render_ops(known, pattern)
    if not lines:
        print(f'gradguard: no operation matches "{pattern}"', file=sys.stderr)
        return 1
    _print(lines, colour_wanted(arguments.color, sys.stdout.isatty()))
    return 0


def _json(known: Table, pattern: str) -> str:
    rows = [known.op(name) or known.module(name) for name in matching(known.names(), pattern)]
    document = {"torch": known.version, "ops": [dataclasses.asdict(row) for row in rows if row is not None]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _print(lines: list[Line], colour: bool) -> None:
    cells = [[getattr(line, field) for _, field in COLUMNS] for line in lines]
    heads = [head for head, _ in COLUMNS]
    if colour:
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        shown = RichTable(*heads)
        for row in cells:
            shown.add_row(*map(Text, row))
        Console(force_terminal=True).print(shown)
        return
    widths = [min(WIDEST, max(len(row[index]) for row in (heads, *cells))) for index in range(len(heads))]
    for row in (heads, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
