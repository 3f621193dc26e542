"""The progress bar: on a terminal only, and never in the way of what it counts."""

from __future__ import annotations

import io
import sys

import pytest

from gradguard.cli import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("impatient", [True, False])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_shows_on_a_terminal_once_it_takes_long(
    terminal: bool, impatient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _Terminal() if terminal else io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "PATIENCE", -1.0 if impatient else 1e9)
    assert list(progress.shown(iter(range(7)), 7)) == list(range(7))
    shown = written.getvalue()
    assert ("checking" in shown and "/7" in shown) == (terminal and impatient)
    assert shown == "" or (terminal and impatient)


def test_who_stops_early_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    written = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    items = progress.shown(iter(range(7)), 7)
    assert [next(items), next(items)] == [0, 1]
    items.close()
    # The cursor is back, and the line of the bar is cleared.
    assert "\x1b[?25h" in written.getvalue()
    assert written.getvalue().rstrip().endswith("\x1b[2K")
