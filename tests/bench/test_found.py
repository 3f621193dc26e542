"""Two runs over libraries are told apart finding by finding, and by what was read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as command
from benchmarks import corpus, found, reading, sections
from benchmarks.found import Change, Finding, compared, load, merged, save

LIBRARY = "thing 1.0"
READ = {("a.py", 1, "GG101"): True, ("a.py", 2, "GG301"): False}
CHECKED = {LIBRARY: {"a.py"}}
TRUE = Finding(LIBRARY, "a.py", 1, "GG101", "error")
FALSE = Finding(LIBRARY, "a.py", 2, "GG301", "warning")
UNREAD = Finding(LIBRARY, "a.py", 3, "GG301", "warning")
QUIET = Finding(LIBRARY, "a.py", 4, "GG302", "information")
ELSEWHERE = Finding(LIBRARY, "b.py", 1, "GG101", "error")


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "verdicts", lambda library: READ if library == LIBRARY else {})


def changes(before: list[Finding], after: list[Finding]) -> list[Change]:
    return compared(before, after, CHECKED)


def worse(before: list[Finding], after: list[Finding]) -> list[bool]:
    return [change.worse for change in changes(before, after)]


def test_what_is_kept_is_what_was_found(tmp_path: Path) -> None:
    save([QUIET, TRUE, FALSE], tmp_path)
    assert load(tmp_path) == [TRUE, FALSE, QUIET]
    assert load(tmp_path / "nowhere") == []


def test_the_same_findings_are_no_change() -> None:
    assert changes([TRUE, QUIET], [QUIET, TRUE]) == []


def test_a_true_finding_that_is_lost_is_worse() -> None:
    assert worse([TRUE], []) == [True]
    assert worse([FALSE], []) == [False]
    assert worse([UNREAD], []) == [False]


def test_a_true_finding_that_no_longer_disturbs_is_worse() -> None:
    assert worse([TRUE], [TRUE._replace(severity="information")]) == [True]
    assert worse([TRUE], [TRUE._replace(severity="warning")]) == [False]


def test_an_error_or_warning_more_is_worse_unless_it_is_true() -> None:
    assert worse([], [TRUE]) == [False]
    assert worse([], [FALSE]) == [True]
    assert worse([], [UNREAD]) == [True]
    assert worse([], [QUIET]) == [False]
    assert worse([QUIET], [QUIET._replace(severity="warning")]) == [True]


def test_a_second_finding_at_a_place_is_a_change() -> None:
    (change,) = changes([QUIET], [QUIET, QUIET])
    assert (change.was, change.now) == (("information",), ("information",) * 2)


def test_files_that_were_not_checked_do_not_count_and_are_kept() -> None:
    assert changes([TRUE, ELSEWHERE], [TRUE]) == []
    assert merged([TRUE, ELSEWHERE], [FALSE], CHECKED) == [ELSEWHERE, FALSE]


def test_what_is_worse_is_told_first() -> None:
    told = [str(change) for change in changes([FALSE, TRUE], [QUIET])]
    assert told == [
        "WORSE thing 1.0: a.py:1 GG101: error -> nothing (true)",
        "thing 1.0: a.py:2 GG301: warning -> nothing (false)",
        "thing 1.0: a.py:4 GG302: nothing -> information (not read)",
    ]


@pytest.mark.parametrize(("after", "code"), [([TRUE], 0), ([], 1), ([TRUE, UNREAD], 1)])
def test_the_command_fails_where_it_compares(
    after: list[Finding],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save([TRUE], tmp_path)
    monkeypatch.setattr(corpus, "library", lambda name: name)
    run = sections.Checked([], after, {LIBRARY: {"a.py"}})
    monkeypatch.setattr(sections, "libraries", lambda *_: run)

    def ends(*more: Any) -> int:
        arguments = ["benchmarks", "--only", "libraries", "--results", str(tmp_path), *more]
        monkeypatch.setattr("sys.argv", arguments)
        return command.main()

    assert ends("--compare") == code
    assert ("WORSE" in capsys.readouterr().out) is bool(code)
    save([TRUE], tmp_path)
    assert ends() == 0
    assert load(tmp_path) == sorted(after)


def test_the_kept_findings_are_of_the_pinned_releases() -> None:
    kept = found.load(command.RESULTS)
    assert kept
    assert {each.library for each in kept} <= {f"{name} {version}" for name, version in corpus.PINS.items()}
