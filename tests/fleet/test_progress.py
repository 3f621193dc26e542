"""What is told while a scan runs."""

from __future__ import annotations

import pytest

from gradguard.fleet import progress
from gradguard.fleet.model import Kind, Source
from gradguard.fleet.progress import Counts
from gradguard.fleet.scan import Came, Head

SOURCES = [Source(Kind.FOLDER, f"/{name}", name) for name in "abcd"]


def head(index: int, part: int = 0, parts: int = 1, **more: object) -> Head:
    return {"source": index, "part": part, "parts": parts, "state": "checked", "kept": False, **more}


def test_done_failed_rate_and_rest_are_counted() -> None:
    clock = iter((0.0, 4.0, 4.0, 4.0, 4.0))
    counts = Counts(lambda: next(clock))
    came = Came(SOURCES)
    for each in (head(0), head(1, 0, 2, kept=True), head(1, 1, 2), head(2, state="unopened", why="x")):
        assert came.take(each)
        counts.take(each)
    assert counts.line(came) == (
        "3 packages done (1 kept from earlier scans), 1 failed, 75% of 4 sources, 1.0 packages/s, 1 s left"
    )


def test_a_log_has_what_failed_and_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    came = Came(SOURCES)
    with progress.shown(Counts()) as show:
        for index in range(4):
            each = head(index) if index else head(0, state="unopened", why="a bomb")
            came.take(each)
            show(came, each)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "gradguard: not read: /a: a bomb"
    assert last.startswith(
        "gradguard: 3 packages done (0 kept from earlier scans), 1 failed, 100% of 4 sources"
    )


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    came = Came(SOURCES)
    with progress.shown(Counts()) as show:
        came.take(head(0))
        show(came, head(0))
    assert "1 done, 0 failed" in capsys.readouterr().err
