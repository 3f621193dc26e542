"""The check, which looks who shares what is written only where a finding may ask, says what one that looks at each write says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from gradguard.check.api import check, run
from gradguard.check.engine import Answer, Wanted
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY, Workspace
from gradguard.engine import analyse
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.driver import entry
from gradguard.engine.driver.record import Record
from gradguard.engine.driver.shares import Budget
from gradguard.engine.driver.work import Work
from gradguard.engine.observe import holders
from gradguard.engine.observe.holders import Sharing
from gradguard.engine.state.run import Run
from gradguard.findings import Applicability
from gradguard.fixplans.plans import Plans
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted([*(FIXTURES / "inplace").glob("*.py"), *(FIXTURES / "graph").glob("*.py")])

FILLS = """\
import torch
def fill(rows):
    for i in range(2):
        rows[i] = i
fill(torch.zeros(9))
fill(torch.zeros(9))
"""
KEPT = """\
import torch
y = torch.rand(3, requires_grad=True).exp()
z = y.exp()
for i in range(3):
    y += 1
"""
REFUSED = """\
import torch
for i in range(3):
    w = torch.rand(3, requires_grad=True)
    w += 1
"""
RAISES = """\
import torch
y = torch.rand(3, requires_grad=True).exp()
y += 1
y.sum().backward()
"""
HOLDER = """\
import torch

class Holder:
    def __init__(self, h):
        self.h = h

    def bump(self):
        self.h += 1

"""
ALONE = """\
one = Holder(torch.rand(3, requires_grad=True).exp())
one.bump()
one.h.sum().backward()
"""
LISTED = """\
rows = [torch.zeros(3)]
Holder(rows[0]).bump()
print(rows)
"""


def source_of(path: Path) -> Source:
    return Source(str(path), path.read_text("utf-8"))


def whole(source: Source, settings: Settings, workspace: Workspace, wanted: Wanted) -> Answer:
    """An engine that looks at every write, and plans fixes for all that its rules say."""
    tape = analyse(source, table.load(), workspace, every_write=True)
    plans = Plans(tape)
    found = [replace(each.finding, fixes=plans.of(each)) for each in registry.told(tape)]
    return Answer(found, tape.limits)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_report_has_the_findings_and_fixes_of_the_whole_analysis(path: Path) -> None:
    assert check(source_of(path), Settings()) == run(source_of(path), Settings(), EMPTY, whole)


def looked_at(monkeypatch: pytest.MonkeyPatch, text: str, *, every_write: bool = False) -> list[int]:
    """The lines of the writes for which it was looked who shares what they change, in order."""
    lines: list[int] = []
    look = holders.sharing

    def counted(run: Run, target: Tensor, operands: Iterable[Tensor]) -> Sharing:
        lines.append(run.statement.lineno if run.statement is not None else 0)
        return look(run, target, operands)

    with monkeypatch.context() as patch:
        patch.setattr(holders, "sharing", counted)
        analyse(Source("program.py", text), table.load(), NO_FILES, every_write=every_write)
    return lines


def test_what_no_op_has_kept_is_looked_at_once_for_each_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(monkeypatch, FILLS, every_write=True).count(4) == 4
    assert looked_at(monkeypatch, FILLS) == [4, 4]


def test_each_write_to_what_an_op_has_kept_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(monkeypatch, KEPT) == [5, 5, 5]


def test_each_write_that_torch_refuses_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(monkeypatch, REFUSED) == looked_at(monkeypatch, REFUSED, every_write=True)


@pytest.mark.parametrize(("calls", "safe"), [(ALONE, True), (LISTED + ALONE, False), (ALONE + LISTED, False)])
def test_a_fix_is_not_safe_for_one_caller_and_wrong_for_another(calls: str, safe: bool) -> None:
    """The list holds a tensor that is written where no op has kept it: its owner would miss the write."""
    report = check(Source("program.py", HOLDER + calls), Settings())
    plans = [plan for finding in report.findings for plan in finding.fixes if plan.kind == "out-of-place"]
    assert [plan.applicability is Applicability.SAFE for plan in plans] == [safe]


def test_a_file_is_analysed_once_whatever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ast.AST] = []
    explore = entry._explore

    def counted(work: Work, body: Callable[[Run], None], node: ast.AST, allowed: Budget) -> Record:
        started.append(node)
        return explore(work, body, node, allowed)

    monkeypatch.setattr(entry, "_explore", counted)
    report = check(Source("program.py", RAISES), Settings())
    assert [plan.kind for finding in report.findings for plan in finding.fixes][:1] == ["out-of-place"]
    assert len(started) == len(set(started)) > 0
