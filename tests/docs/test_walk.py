"""The way of one tensor that the page on the architecture describes is the one that it goes."""

from __future__ import annotations

import itertools
import re
import sys
from types import FrameType

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.ide.wording import Wording
from gradguard.lsp.client import Client
from gradguard.lsp.diagnostics import diagnostics
from gradguard.lsp.documents import Document
from gradguard.lsp.parts import text_of
from gradguard.lsp.snapshot import Snapshot
from gradguard.source.text import Source
from tests.docs.pages import INLINE, PYTHON, ROOT

CODE = str(ROOT / "server" / "gradguard") + "/"
URI = "file:///script.py"
BEGINS = ("engine/python", "statements.execute_block")
"""Called for each statement of a top level."""

Call = tuple[str, str]
"""A room, and a function as the page names it."""


def section() -> str:
    """What the page says of it."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    return page.partition("\n## One tensor's way\n")[2].partition("\n## ")[0]


def stretches() -> list[tuple[str, list[Call]]]:
    """For each stretch of the way what runs, and the calls in order."""
    found: list[tuple[str, list[Call]]] = []
    for line in section().splitlines():
        if line.startswith("| ") and "`" in line:
            what, room, functions = (cell.strip() for cell in line.strip("|").split("|"))
            if what:
                found.append((what.strip("`"), []))
            found[-1][1].extend((room.strip("`"), each) for each in INLINE.findall(functions))
    return found


@pytest.fixture(scope="module")
def called() -> list[Call]:
    """Every call that is made for the script, from its text to the diagnostics."""
    (text,) = PYTHON.findall(section())
    calls: list[Call] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(CODE):
            room, _, file = path[len(CODE) : -len(".py")].rpartition("/")
            calls.append((room, f"{file}.{frame.f_code.co_name}"))

    snapshot = Snapshot(
        URI, 0, "script.py", text, (Document(URI, "script.py", "python", 0, text_of(text)),), (1,)
    )
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        report = check(Source("script.py", text), Settings())
        shown = diagnostics(report.findings, snapshot, Client(), Wording("en"), lambda each: None, "utf-16")
    finally:
        sys.setprofile(before)
    assert [(each.code, each.range.start.line) for each in shown[URI]] == [("GG101", 4)]
    return calls


def test_the_way_is_the_one_that_is_gone(called: list[Call]) -> None:
    """Each stretch that is a statement lies between the beginning of that statement and of the next."""
    (text,) = PYTHON.findall(section())
    statements = [line.partition("  #")[0] for line in text.splitlines() if line]
    begins = [index for index, call in enumerate(called) if call == BEGINS][: len(statements)]
    assert len(begins) == len(statements)
    at = 0
    for what, calls in stretches():
        end = len(called)
        if what in statements:
            number = statements.index(what)
            at = begins[number]
            end = begins[number + 1] if number + 1 < len(begins) else end
        for call in calls:
            assert call in called[at:end], f"{what}: {call} is not called there"
            at = called.index(call, at) + 1


def test_a_room_stands_once_in_each_stretch() -> None:
    assert [what for what, _ in stretches()][1:4] == ["y = torch.sigmoid(x)", "y += 1", "y.sum().backward()"]
    for what, calls in stretches():
        rooms = [room for room, _ in itertools.groupby(calls, key=lambda call: call[0])]
        assert sorted(set(rooms)) == sorted(rooms), what


def test_the_words_around_name_no_other_functions() -> None:
    named = {function for _, calls in stretches() for _, function in calls}
    said = {each for each in INLINE.findall(section()) if re.fullmatch(r"\w+\.\w+", each)}
    assert said - named == {"torch.sigmoid"}
