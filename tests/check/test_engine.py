"""The check that spares itself who shares what is written says what an analysis with all that is known says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.check.api import check, run
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY, Workspace
from gradguard.engine import SharingNotNoted, analyse
from gradguard.findings import Finding, Limit
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted([*(FIXTURES / "inplace").glob("*.py"), *(FIXTURES / "graph").glob("*.py")])

WRITES = """\
import torch

def f(x):
    y = x.exp()
    y += 1
    return y
"""


def source_of(path: Path) -> Source:
    return Source(str(path), path.read_text("utf-8"))


def whole(
    source: Source, settings: Settings, workspace: Workspace
) -> tuple[list[Finding], tuple[Limit, ...]]:
    """An engine that notes everything."""
    analysis = analyse(source, table.load(), workspace)
    return registry.findings(analysis), analysis.limits


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_report_has_the_findings_and_fixes_of_the_whole_analysis(path: Path) -> None:
    assert check(source_of(path), Settings()) == run(source_of(path), Settings(), EMPTY, whole)


def test_what_was_not_noted_is_not_taken_for_nothing() -> None:
    source = Source("program.py", WRITES)
    spared = analyse(source, table.load(), NO_FILES, shares=False)
    noted = analyse(source, table.load(), NO_FILES, spared)
    with pytest.raises(SharingNotNoted):
        _ = spared.sharing
    assert [getattr(node, "lineno", 0) for node in noted.sharing] == [5]
    assert spared.events
    assert [type(one) for one in spared.events] == [type(one) for one in noted.events]
