"""What the server logs."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradguard.lsp import logs
from tests.hostile.alphabet import acting, commands


@pytest.fixture
def unchanged() -> Iterator[None]:
    """The loggers as they were, afterwards."""
    known = [logging.getLogger(name) for name in ("gradguard", "pygls")]
    before = [(each, list(each.handlers), each.level, each.propagate) for each in known]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


@pytest.mark.usefixtures("unchanged")
def test_a_record_is_obeyed_by_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logs.to_stderr("info", str(tmp_path / "log"))
    try:
        raise ValueError("\x1b[2J\n::error ::x\n##[error]y")
    except ValueError:
        logging.getLogger("gradguard.x").exception("in %s", "a\x07\n::error ::b.py")
    for written in (stream.getvalue(), (tmp_path / "log").read_text("utf-8")):
        assert "Traceback" in written
        assert not acting(written)
        assert not commands(written)
