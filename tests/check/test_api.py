"""The order of work from raw findings to the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradguard.check.api import Report, ordered, run
from gradguard.check.settings import Level, Settings
from gradguard.check.workspace import EMPTY, LONGEST, ReadingWorkspace, source_roots
from gradguard.findings import Certainty, Finding, Severity
from gradguard.source.text import Source
from tests.check.rules import broken_engine, engine, finding, refused, rules

SOURCE = Source("train.py", "import torch\n" + "y.add_(1)\n" * 30)


def codes(settings: Settings, *findings: Finding) -> list[str]:
    return [each.code for each in run(SOURCE, settings, EMPTY, engine(*findings), rules).findings]


def test_a_file_without_torch_starts_no_engine() -> None:
    nothing = broken_engine(AssertionError("the engine ran"))
    assert run(Source("a.py", "x = 1\n"), Settings(), EMPTY, nothing, refused) == Report()


def test_a_text_that_is_too_long_is_told_and_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = broken_engine(AssertionError("the engine ran"))
    monkeypatch.setattr("gradguard.source.text.split", lambda *_: pytest.fail("it was parsed"))
    text = "import torch\n"
    source = Source("a.py", text + "x" * (LONGEST + 1 - len(text)))
    report = run(source, Settings(), EMPTY, nothing, refused)
    assert [limit.message for limit in report.limits] == ["not analysed: longer than 1,000,000 characters"]
    assert not report.findings


def test_a_text_as_long_as_may_be_is_analysed() -> None:
    text = "import torch\ny.add_(1)\n#"
    source = Source("train.py", text + "x" * (LONGEST - len(text)))
    report = run(source, Settings(), EMPTY, engine(finding(2)), rules)
    assert [each.code for each in report.findings] == ["GG101"]
    assert not report.limits


def test_a_file_that_is_ignored_starts_no_engine() -> None:
    source = Source("a.py", "import torch  # gradguard: ignore-file\n")
    assert run(source, Settings(), EMPTY, broken_engine(AssertionError()), rules) == Report()


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), KeyError("k"), MemoryError()])
def test_a_fault_is_a_limit_and_never_raised(error: Exception) -> None:
    report = run(SOURCE, Settings(), EMPTY, broken_engine(error), rules)
    assert report.findings == ()
    assert type(error).__name__ in report.limits[0].message
    assert "Traceback" in report.crash


def test_a_fault_in_the_rules_is_a_limit_too() -> None:
    assert "AssertionError" in run(SOURCE, Settings(), EMPTY, engine(finding(2)), refused).crash


def test_broken_pieces_are_told_as_limits() -> None:
    report = run(Source("a.py", "import torch\nx = (\n"), Settings(), EMPTY, engine(), rules)
    assert [limit.span.line for limit in report.limits] == [2]


def test_selected_ignored_and_per_file() -> None:
    both = (finding(2), finding(3, "GG301"))
    assert codes(Settings(), *both) == ["GG101", "GG301"]
    assert codes(Settings(select=("GG301",)), *both) == ["GG301"]
    assert codes(Settings(ignore=("GG301",)), *both) == ["GG101"]
    assert codes(Settings(select=("GG301",), ignore=("GG301",)), *both) == []
    assert codes(Settings(levels=(("GG301", Level.OFF),)), *both) == ["GG101"]
    assert codes(Settings(per_file_ignores=(("train.py", ("GG101",)),)), *both) == ["GG301"]
    assert codes(Settings(per_file_ignores=(("tests/**", ("GG101",)),)), *both) == ["GG101", "GG301"]


def test_patterns_are_relative_to_the_root_of_the_project() -> None:
    source = Source("/repo/tests/a.py", SOURCE.text)
    silent = Settings(per_file_ignores=(("/tests/", ("GG101",)),), root="/repo")
    found = engine(finding(2, path="/repo/tests/a.py"))
    assert run(source, silent, EMPTY, found, rules).findings == ()
    assert run(source, silent.with_changes(root="/repo/tests"), EMPTY, found, rules).findings != ()


def test_a_rule_that_is_off_speaks_when_asked_for() -> None:
    assert codes(Settings(), finding(2, "GG120")) == []
    assert codes(Settings(select=("GG120",)), finding(2, "GG120")) == ["GG120"]
    assert codes(Settings(levels=(("GG120", Level.HINT),)), finding(2, "GG120")) == ["GG120"]


def test_levels_are_laid_over_severities() -> None:
    report = run(SOURCE, Settings(levels=(("GG101", Level.ERROR),)), EMPTY, engine(finding(2)), rules)
    assert report.findings[0].severity is Severity.ERROR


def test_what_is_possible_is_shown_on_demand_and_never_fails_a_run() -> None:
    possible = finding(2, certainty=Certainty.POSSIBLE)
    assert codes(Settings(), possible) == []
    loud = Settings(all=True, levels=(("GG101", Level.ERROR),))
    assert run(SOURCE, loud, EMPTY, engine(possible), rules).findings[0].severity is Severity.INFORMATION


def test_one_finding_for_a_rule_and_place_the_surest() -> None:
    sure = finding(2, message="b")
    likely = replace(sure, certainty=Certainty.LIKELY, message="a")
    assert ordered([likely, sure, sure]) == (sure,)
    assert [each.span.line for each in ordered([finding(9), finding(2), finding(3, "GG301")])] == [2, 3, 9]


def test_findings_in_other_files_are_kept_apart_and_obey_their_comments() -> None:
    files = {
        "/w/model.py": "import torch\ny.add_(1)\ny.mul_(2)  # gradguard: ignore[GG101]\n",
    }
    workspace = ReadingWorkspace(files.__contains__, files.get)
    found = engine(finding(2, path="/w/model.py"), finding(3, path="/w/model.py"), finding(2))
    report = run(SOURCE, Settings(), workspace, found, rules)
    assert [(each.path, each.span.line) for each in report.elsewhere] == [("/w/model.py", 2)]
    assert [each.path for each in report.findings] == ["train.py"]
    assert [(path, span.line) for path, span in report.needed] == [("/w/model.py", 3)]


def test_imports_are_resolved_as_python_does() -> None:
    files = dict.fromkeys(
        [
            "/w/pkg/__init__.py",
            "/w/pkg/a.py",
            "/w/pkg/sub/__init__.py",
            "/w/pkg/sub/b.py",
            "/w/train.py",
            "/w/src/lib.py",
        ],
        "import torch\n",
    )
    workspace = ReadingWorkspace(files.__contains__, files.get, ["/w", "/w/src"])
    assert workspace.resolve("pkg.a", 0, "/w/train.py") == "/w/pkg/a.py"
    assert workspace.resolve("pkg", 0, "/w/pkg/sub/b.py") == "/w/pkg/__init__.py"
    assert workspace.resolve("a", 2, "/w/pkg/sub/b.py") == "/w/pkg/a.py"
    assert workspace.resolve("", 1, "/w/pkg/a.py") == "/w/pkg/__init__.py"
    assert workspace.resolve("sub.b", 1, "/w/pkg/a.py") == "/w/pkg/sub/b.py"
    assert workspace.resolve("lib", 0, "/w/train.py") == "/w/src/lib.py"
    assert workspace.resolve("torch", 0, "/w/train.py") is None
    assert workspace.resolve("x", 9, "/w/train.py") is None
    source = workspace.source("/w/pkg/a.py")
    assert source is not None
    assert workspace.source("/w/pkg/a.py") is source
    assert workspace.source("/w/none.py") is None


def test_where_a_file_is_missing_is_told() -> None:
    missed: list[str] = []
    workspace = ReadingWorkspace({"/w/a.py"}.__contains__, {}.get, ["/w"], absent=missed.append)
    assert workspace.resolve("a", 0, "/w/train.py") == "/w/a.py"
    assert workspace.resolve("b.c", 0, "/w/lib/x.py") is None
    assert missed == [
        "/w/a/__init__.py", "/w/lib/b/c/__init__.py", "/w/lib/b/c.py", "/w/b/c/__init__.py", "/w/b/c.py",
    ]  # fmt: skip


def test_roots_that_lead_out_are_left_to_who_named_them() -> None:
    settings = Settings(src=(".", "src", "../other", "/etc"), trusted=("/mine",))
    assert source_roots(settings, "/w", lambda folder: folder.startswith("/w")) == (
        ["/mine", "/w", "/w/src"],
        ["../other", "/etc"],
    )
