"""Paths as services name them that show findings beside the code: from the root of the repository.

In a monorepo the command may be started in `packages/vision`, and `train.py` is `packages/vision/train.py` there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TypeVar

from gradguard.cli.cells import InCell
from gradguard.cli.result import Outcome, Trouble
from gradguard.disk.links import Projects
from gradguard.findings import Finding, Limit, Related
from gradguard.report.findings import LineOf

Placed = TypeVar("Placed", Finding, Related, Limit, Trouble)


def from_root(outcome: Outcome, line_of: LineOf) -> tuple[Outcome, LineOf]:
    """The same with its paths from the root of the repository that the working folder lies in, where there is one."""
    here = os.getcwd()
    root = Projects(working_folder=False).repository(here)
    if root in ("", here):
        return outcome, line_of
    shown: dict[str, str] = {}

    def named(path: str) -> str:
        full = os.path.normpath(os.path.join(here, path))
        inside = full.startswith(os.path.join(root, "")) and not path.startswith("<")
        name = os.path.relpath(full, root).replace(os.sep, "/") if inside else path
        shown[name] = path
        return name

    def moved(path: str) -> str:
        if not isinstance(path, InCell):
            return named(path)
        file = named(path.file)
        cell = InCell(f"{file}:cell {path.cell}")
        cell.file, cell.cell, cell.rows, cell.source = file, path.cell, path.rows, path.source
        return cell

    def placed(what: Placed) -> Placed:
        return replace(what, path=moved(what.path))

    renamed = replace(
        outcome,
        findings=tuple(
            replace(placed(each), related=tuple(map(placed, each.related))) for each in outcome.findings
        ),
        limits=tuple(map(placed, outcome.limits)),
        troubles=tuple(map(placed, outcome.troubles)),
    )
    return renamed, lambda path, number: line_of(
        path if isinstance(path, InCell) else shown.get(path, path), number
    )
