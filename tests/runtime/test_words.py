"""What a run tells can be printed, whatever files are called and whatever stands in them."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hostile.alphabet import TEXTS, acting, commands
from tests.oracle.pool import Died, shared_pool
from tests.runtime.running import RUN

from gradguard.findings import Certainty, Finding, Limit, Related, Severity, Span
from gradguard.runtime import lines
from gradguard.runtime.html import html_report
from gradguard.runtime.report import Costs, HostReads, RunReport, Series, document
from gradguard.runtime.report_text import text_report
from gradguard.source.printable import printable_json

NAMES = TEXTS.filter(lambda name: name and "\0" not in name)
SPAN = Span(1, 2, 1, 4)


@st.composite
def reports(draw: st.DrawFn) -> RunReport:
    finding = Finding(
        draw(NAMES),
        SPAN,
        "GG101",
        "inplace-on-saved-tensor",
        Severity.ERROR,
        Certainty.OBSERVED,
        draw(TEXTS),
        (Related(draw(NAMES), SPAN, draw(TEXTS)),),
        notes=(draw(TEXTS),),
    )
    return RunReport(
        (draw(TEXTS),),
        "2.13",
        (finding,),
        (Limit("", SPAN, draw(TEXTS)),),
        (Series(draw(NAMES), 1, draw(TEXTS), 2, 1, (0.0, 1.0), (1, 2), (1, 2)),),
        (HostReads(draw(NAMES), 1, 1, 1, (draw(TEXTS),)),),
        Costs(1.0, 0.1, 1, False),
        (),
    )


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))


@given(reports(), TEXTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_report_can_be_printed(monkeypatch: pytest.MonkeyPatch, report: RunReport, line: str) -> None:
    source = SimpleNamespace(lines=[line + "\n"], line=lambda number: line)
    monkeypatch.setattr(lines, "file", lambda path: source)
    root = Path("/nowhere")
    shown = text_report(report, root)
    assert not acting(shown)
    assert not commands(shown)
    assert len(re.findall("^.*: error GG101 ", shown, re.MULTILINE)) == 1
    page = html_report(report, root)
    assert not acting(page)
    plain = html_report(RunReport(("x",), *_without_texts(report)), root)
    assert Page(page).tags == Page(plain).tags


def _without_texts(report: RunReport) -> tuple[object, ...]:
    """The same report in harmless words."""
    (finding,), (series,), (reads,) = report.findings, report.series, report.reads
    return (
        report.torch,
        (Finding("a", SPAN, finding.code, finding.name, finding.severity, finding.certainty, "m", (Related("a", SPAN, "m"),), notes=("n",)),),
        (Limit("", SPAN, "m"),),
        (Series("a", 1, "w", series.passes, series.stride, series.seconds, series.nodes, series.saved_bytes),),
        (HostReads("a", 1, reads.count, reads.steps, ("op",)),),
        report.costs,
        (),
    )  # fmt: skip


@given(reports())
def test_json_says_the_same(report: RunReport) -> None:
    told = document(report, Path("/nowhere"))
    shown = printable_json(json.dumps(told, ensure_ascii=False, indent=2))
    assert not acting(shown)
    assert json.loads(shown) == told


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such names cannot be given to files")
@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_a_run_of_such_a_file_is_obeyed_by_nobody(form: str) -> None:
    name = "a\x1b[2J\n::error ::x##[error]\udcff.py"
    program = "import torch\nx = torch.rand(3, requires_grad=True)\ny = x.exp()\nY\ny.sum().backward()\n"
    text = program.replace("Y", "y.add_(1)  ##vso[task.complete] \x1b[31m")
    for words in ([], ["--output", "report"]):
        ran = shared_pool().call(RUN, timeout=120, argv=["--format", form, *words, name], files={name: text})
        assert not isinstance(ran, Died), ran
        # Python's own traceback of the program comes first.
        shown = ran.files.get("report") or ran.stderr[ran.stderr.rindex("\n", 0, ran.stderr.index("GG101")) :]
        assert not acting(shown)
        assert not commands(shown)
        assert "GG101" in shown
