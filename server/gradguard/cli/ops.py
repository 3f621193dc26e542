"""`gradguard ops`: search the table of what torch operations save, alias, write and read."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Iterable
from typing import Any

from gradguard.check.parsing import version_problem
from gradguard.cli.output import colour_wanted
from gradguard.ops import table
from gradguard.ops.model import NEVER, Condition, Form, ModuleRow, Op

COLUMNS = ("name", "saves", "shares memory", "writes", "waits for the device")


def run(arguments: argparse.Namespace) -> int:
    """Print the matching rows and return the exit code: 0, or 1 when there are none."""
    if arguments.torch and (problem := version_problem(arguments.torch)):
        print(f"gradguard: error: --torch: {problem}", file=sys.stderr)
        return 2
    known = table.load(None if arguments.torch in (None, "auto") else arguments.torch)
    names = matching(known.names(), arguments.pattern)
    rows = [row for name in names if (row := known.op(name) or known.module(name)) is not None]
    if arguments.format == "json":
        document = {"torch": known.version, "ops": [_plain(row) for row in rows]}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    if not rows:
        print(f'gradguard: no operation matches "{arguments.pattern}"', file=sys.stderr)
        return 1
    _print([summary(row) for row in rows], colour_wanted(arguments.color, sys.stdout.isatty()))
    return 0


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Names that a pattern finds: as a shell pattern when it has `*`, `?` or `[`, else as a part of the name."""
    if not pattern:
        return sorted(names)
    if any(sign in pattern for sign in "*?["):
        return sorted(
            name
            for name in names
            if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.rpartition(".")[2], pattern)
        )
    return sorted(name for name in names if pattern.lower() in name.lower())


def summary(row: Op | ModuleRow) -> tuple[str, ...]:
    """The cells of one line, for all forms of a callable together."""
    forms = row.forms
    return (
        row.name,
        _join(_said(saved.role, saved.when) for form in forms for saved in form.saves),
        _join(_alias(form) for form in forms),
        _join(
            _said(write.role, write.when) + ("" if write.counted else ", not counted")
            for form in forms
            for write in form.writes
        ),
        _join(_said("yes", form.reads) for form in forms if form.reads != NEVER),
    )


def _alias(form: Form) -> str:
    return _join(
        _said(f"{alias.result} of {alias.of}", alias.when) + (", one of several" if alias.multi else "")
        for alias in form.aliases
    )


def _said(what: str, when: Condition) -> str:
    if not when or "*" in when:
        return what
    return f"{what} if {' or '.join(when)}"


def _join(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _print(rows: list[tuple[str, ...]], colour: bool) -> None:
    if colour:
        from rich.console import Console
        from rich.table import Table

        shown = Table(*COLUMNS)
        for row in rows:
            shown.add_row(*row)
        Console(force_terminal=True).print(shown)
        return
    widths = [min(44, max(len(row[index]) for row in (COLUMNS, *rows))) for index in range(len(COLUMNS))]
    for row in (COLUMNS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _plain(row: Op | ModuleRow) -> dict[str, Any]:
    import dataclasses

    plain: dict[str, Any] = dataclasses.asdict(row)
    return plain
