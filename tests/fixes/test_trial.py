"""A fix is offered, and made, only where the text that comes out shows the mistake no more and nothing new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types as lsp

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.cli.fix import fix
from gradguard.cli.worker import Checker, Job
from gradguard.findings import Applicability, Finding, FixPlan
from gradguard.ide.analysis import analyse
from gradguard.ide.edits import Edits
from gradguard.ide.trial import Trials, Tried
from gradguard.source.text import Source
from tests.fixes.test_fixtures import ROOT, read
from tests.lsp import editor as editors
from tests.lsp.editor import REAL, Editor
from tests.lsp.inside import Inside

HEAD = "import torch\n\nx = torch.rand(3, requires_grad=True)\n"
AGAIN = HEAD + "y = x.exp()\nif True:\n    y.add_(1)\ny.sum().backward()\n"

SPOILING = {
    "the mistake is found again": ("y.add_(1)", "y.add_(2)", "GG101 would be found there again"),
    "something else is found": (
        "y.add_(1)",
        "y = y + 1\n    x.mul_(2)\n    y.sum().backward()\n    y.sum().backward()",
        "",
    ),
    "it does not parse": ("y.add_(1)", "y.add_(", "Python would not read the result"),
    "it does nothing": ("y.add_(1)", "y.add_(1)", "it cannot be written here"),
}


def told(text: str) -> tuple[Source, Finding, Trials]:
    source = Source("/nowhere/a.py", text)
    report = check(source, Settings())
    finding = next(each for each in report.findings if each.code == "GG101")
    return source, finding, Trials(source, report, lambda changed: check(changed, Settings()))


@pytest.mark.parametrize("what", SPOILING)
def test_what_speaks_against_a_fix(what: str) -> None:
    old, new, why = SPOILING[what]
    source, finding, trials = told(AGAIN)
    plan = FixPlan("made-up", "", Applicability.SAFE, finding.span)
    said = trials.one(finding, plan, ((finding.span, new),)).why
    assert source.slice(finding.span) == old
    assert said == why if why else said.endswith(("would be found in line 7", "would be found in line 8"))


def test_a_fix_that_settles_it_passes() -> None:
    _, finding, trials = told(AGAIN)
    tried = trials.one(finding, finding.fixes[0], ((finding.span, "y = y.add(1)"),))
    assert (tried.why, tried.report.findings) == ("", ())


def test_lines_that_move_do_not_make_old_findings_new() -> None:
    text = AGAIN + "z = x.exp()\nz.add_(1)\nz.sum().backward()\n"
    _, finding, trials = told(text)
    assert (
        trials.one(finding, finding.fixes[0], ((finding.span, "pass\n    pass\n    y = y.add(1)"),)).why == ""
    )


REFUSED = ROOT / "move-after" / "write_under_no_grad.py"
"""One of its fixes would leave the mistake: a clone of what is saved, not of what is written."""
FLAG = """import torch
from torch import nn

cell = nn.RNNCell(4, 8)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for _ in range(3):
    state = cell(torch.rand(2, 4), state)
    optimizer.zero_grad()
    state.square().mean().backward(retain_graph=True)
    optimizer.step()
"""
"""Without the flag the second backward would raise: dropping it is planned, and offered by nobody."""


def plans(text: str, code: str) -> list[FixPlan]:
    return [
        plan
        for finding in check(Source("a.py", text), Settings()).findings
        if finding.code == code
        for plan in finding.fixes
    ]


def test_reports_leave_it_out(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(FLAG)
    assert [plan.kind for plan in plans(FLAG, "GG206")] == ["drop-retain-graph"]
    checked = Checker(None, with_edits=True).check(Job(str(file), Settings()))
    found = {each.code: each for each in checked.report.findings}
    assert found["GG206"].fixes == ()
    assert found["GG106"].fixes
    assert {finding.code: len(made) for finding, made in checked.edits}["GG206"] == 0


def test_nor_is_it_made() -> None:
    done = fix(Job("/nowhere/train.py", Settings(), data=FLAG.encode()), Checker(None), unsafe=True)
    assert "retain_graph=True" not in done.after or "drop-retain-graph" not in done.kinds
    assert done.report.findings == ()


def test_a_trial_leaves_the_text_that_it_is_for_as_it_was() -> None:
    text = read(REFUSED)
    source, finding, _ = told(text)
    checker = Checker(None)
    job = Job("/nowhere/a.py", Settings(), data=text.encode())
    before = [source.span(statement) for statement in source.tree.body]
    trials = Trials(
        source, checker.source_checked(job, source), lambda each: checker.source_checked(job, each)
    )
    for plan in finding.fixes:
        trials.edits(finding, plan)
    assert [source.span(statement) for statement in source.tree.body] == before
    assert checker.source_checked(job, source).findings == check(source, Settings()).findings


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Editor]:
    started = await editors.start(REAL)
    try:
        yield started
    finally:
        await editors.stop(started)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_editor_offers_it_neither_and_explains(real: Editor) -> None:
    uri = await real.open(FLAG)
    titles = [
        each.title for each in await real.actions(uri, "state.square()", [lsp.CodeActionKind.QuickFix.value])
    ]
    assert "Drop `retain_graph=True`" not in titles
    assert titles[0].startswith("Explain how to repair GG206")
    again = [each.title for each in await real.actions(uri, "optimizer.step()")]
    assert any(title.startswith("Detach `state`") for title in again)


@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_is_tried_while_typing_or_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []
    whole = Trials.one

    def counted(self: Trials, finding: Finding, plan: FixPlan, edits: Edits | None = None) -> Tried:
        tries.append(plan.kind)
        return whole(self, finding, plan, edits)

    monkeypatch.setattr(Trials, "one", counted)
    editor = Inside(analyser=analyse)
    await editor.initialize()
    uri = "file:///nowhere/flag.py"
    editor.open(uri, FLAG)
    await editor.diagnostics(uri)
    editor.type(uri, "import os\n")
    shown = await editor.diagnostics(uri)
    assert tries == []
    (flag,) = (each["range"] for each in shown if each["code"] == "GG206")
    for _ in range(2):
        asked = {
            "textDocument": {"uri": uri},
            "range": flag,
            "context": {"diagnostics": [], "triggerKind": 2},
        }
        await editor.request("textDocument/codeAction", asked)
        assert tries == ["drop-retain-graph"]
    editor.type(uri, "import sys\n")
    await editor.diagnostics(uri)
    assert tries == ["drop-retain-graph"]
