"""Fixes are planned and written for the torch that the settings name, as findings are."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.check.workspace import EMPTY
from gradguard.findings import Applicability, FixPlan, Span
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.ide import inplace
from gradguard.ide.analysis import analyse
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.source.text import Source

OLD, NEW = table.VERSIONS
GONE = """\
import torch
w = torch.rand(3, 3, requires_grad=True)
(w * torch.eye(3)).sum().backward()
w.sub_(w.grad.cholesky())
"""
"""`Tensor.cholesky` is an operation of the older release; in the newer one nobody knows what is called here."""
WRITE = """\
import torch
y = torch.rand(3, requires_grad=True).exp()
y.neg_()
y.sum().backward()
"""
REWRITE = """\
import torch
y = torch.rand(3, requires_grad=True) * 2
y = y.neg()
y.sum().backward()
"""


def planned(text: str, version: str) -> list[FixPlan]:
    report = check(Source("program.py", text), Settings(torch=version))
    return [plan for finding in report.findings for plan in finding.fixes]


def test_what_computes_numbers_only_is_asked_of_the_wanted_release() -> None:
    def safe(version: str) -> list[bool]:
        plans = [plan for plan in planned(GONE, version) if plan.kind == "no-grad"]
        return [plan.applicability is Applicability.SAFE for plan in plans]

    assert safe(OLD) == [True]
    assert safe(NEW) == [False]
    assert safe("auto") == safe(NEW)


@pytest.fixture
def older_lacks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The older release is without an operation that the newer one has."""
    rows, names = table.rows_of(OLD)
    del rows[request.param]
    older = Table(OLD, "", rows, names)
    load = table.load
    monkeypatch.setattr(table, "load", lambda version=None: older if version == OLD else load(version))


def fixed(text: str, version: str, kind: str) -> list[str]:
    """The third line of the text after each plan of a kind."""
    source = Source("program.py", text)
    plans = [plan for plan in planned(text, version) if plan.kind == kind]
    return [applied(source, edits(plan, source) or ()).splitlines()[2] for plan in plans]


@pytest.mark.parametrize("older_lacks", ["Tensor.neg"], indirect=True)
def test_a_form_out_of_place_is_looked_for_in_the_wanted_release(older_lacks: None) -> None:
    assert fixed(WRITE, NEW, "out-of-place") == ["y = y.neg()"]
    assert fixed(WRITE, OLD, "out-of-place") == ["y = y.clone().neg_()"]


@pytest.mark.parametrize("older_lacks", ["Tensor.neg_"], indirect=True)
def test_a_form_in_place_is_looked_for_in_the_wanted_release(older_lacks: None) -> None:
    def offered(version: str) -> list[str]:
        source = Source("program.py", REWRITE)
        known = analyse(source, Settings(torch=version), EMPTY).tape
        plans = inplace.rewrites(source, Span(3, 1, 3, 1), known=known)
        return [applied(source, edits(plan, source) or ()).splitlines()[2] for plan in plans]

    assert offered(NEW) == ["y.neg_()"]
    assert offered(OLD) == []
