"""`gradguard ops`: search the table of what torch operations save, alias, write and read."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import textwrap

from gradguard.check.parsing import version_problem
from gradguard.check.settings import AUTO
from gradguard.cli.configuration import assumed
from gradguard.cli.output import colour_wanted
from gradguard.cli.stderr import complain, tell
from gradguard.disk.environment import torch_beside
from gradguard.ops import table
from gradguard.ops.listing import Line, matching, render_ops
from gradguard.ops.table import Table
from gradguard.source.printable import printable_json

COLUMNS = (
    ("operation", "name"),
    ("saves", "saves"),
    ("shares memory", "views"),
    ("writes", "writes"),
    ("waits for the device", "reads"),
    ("gradient", "formula"),
    ("note", "note"),
)
"""Heading and field of `Line`."""

NARROWEST = 40
"""Columns assumed of a terminal that says less."""


def run(arguments: argparse.Namespace) -> int:
    """Print the matching rows and return the exit code: 0, 1 when there are none, 2 for a wrong request."""
    if arguments.torch and (problem := version_problem(arguments.torch)):
        complain(f"--torch: {problem}")
        return 2
    known = table.load(assumed(arguments.torch))
    pattern = arguments.pattern or ""
    if arguments.format == "json":
        print(_json(known, pattern))
        return 0
    lines = render_ops(known, pattern)
    if not lines:
        tell(f'no operation matches "{pattern}"')
        return 1
    width = max(NARROWEST, shutil.get_terminal_size().columns)
    colour = colour_wanted(arguments.color, sys.stdout.isatty())
    print("\n".join(_table(lines, width, colour) or _records(lines, width, colour)))
    tell(_which(known, arguments.torch))
    return 0


def _which(known: Table, asked: str | None) -> str:
    """Whose behaviour was shown, why, and how to ask for another release."""
    if known.note:
        return known.note
    if asked not in (None, AUTO):
        return f"as in torch {known.version}"
    why = "which is installed" if torch_beside() else "the newest known"
    others = ", ".join(v for v in table.VERSIONS if v != known.version)
    return f"as in torch {known.version}, {why}; --torch VERSION asks for another ({others})"


def _json(known: Table, pattern: str) -> str:
    rows = [known.op(name) or known.module(name) for name in matching(known.names(), pattern)]
    document = {"torch": known.version, "ops": [dataclasses.asdict(row) for row in rows if row is not None]}
    return printable_json(json.dumps(document, indent=2, ensure_ascii=False))


def _table(lines: list[Line], width: int, colour: bool) -> list[str]:
    """A line for each row, without the columns that are empty throughout; empty when that is too wide."""
    cells = [[getattr(line, field) for _, field in COLUMNS] for line in lines]
    heads = [head for head, _ in COLUMNS]
    shown = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    widths = {i: max(len(row[i]) for row in (heads, *cells)) for i in shown}
    if sum(widths.values()) + 2 * (len(shown) - 1) > width:
        return []
    out = []
    for number, row in enumerate((heads, *cells)):
        texts = [_styled(row[i].ljust(widths[i]), colour and (number == 0 or i == 0)) for i in shown]
        out.append("  ".join(texts).rstrip())
    return out


def _records(lines: list[Line], width: int, colour: bool) -> list[str]:
    """A paragraph for each row: its name, then what there is to say of it, each under its heading."""
    fields = [(head, field) for head, field in COLUMNS if field != "name"]
    room = max(
        (len(head) for head, field in fields if any(getattr(line, field) for line in lines)), default=0
    )
    out: list[str] = []
    for line in lines:
        out += ["", _styled(line.name, colour)] if out else [_styled(line.name, colour)]
        said = [(head, getattr(line, field)) for head, field in fields if getattr(line, field)]
        for head, text in said or [("", "keeps, shares and writes nothing")]:
            label = f"  {head.ljust(room)}  " if head else "  "
            out += textwrap.wrap(
                text,
                width,
                initial_indent=label,
                subsequent_indent=" " * len(label),
                break_long_words=False,
                break_on_hyphens=False,
            )
    return out


def _styled(text: str, bold: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if bold else text
