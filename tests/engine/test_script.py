"""The top level of a file: run once where it only defines things, along its ways where it does more."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import Analysis, analyse
from gradguard.ops import table
from gradguard.source.text import Source

SETTINGS = """
import os

def setting(name):
    if os.environ.get(name):
        return 1
    if os.environ.get("DEFAULTS"):
        return 2
    return 3
"""
DEFINES = """
import torch
from settings import setting

WIDTH = setting("WIDTH")

def double(x):
    return x * WIDTH
"""
TRAINS = """
import torch
from settings import setting

width = setting("WIDTH")
x = torch.rand(3, requires_grad=True)
y = x.exp()
if width == 3:
    y += 1
y.sum().backward()
"""
OWN = (
    DEFINES
    + """
if torch.cuda.is_available():
    DEVICE = "cuda"
else:
    DEVICE = "cpu"

def where():
    return DEVICE
"""
)
HELPERS = """
import functools

calls = []

@functools.lru_cache
def looked_up(name):
    total = 0
    for step in range(9):
        total += step
    return total
"""
ASKS = """
import torch
from helpers import looked_up

def {name}(x):
    {calls}
    return x
"""


def analysed(files: Mapping[str, str], path: str = "/w/main.py") -> Analysis:
    """What the engine makes of a file among others."""
    workspace = ReadingWorkspace(files.__contains__, files.get)
    return analyse(Source(path, files[path]), table.load(None), workspace)


def script_steps(text: str) -> int:
    """What the top level took."""
    return analysed({"/w/settings.py": SETTINGS, "/w/main.py": text}).records["script"].steps


def test_what_other_files_decide_is_nothing_to_a_top_level_that_only_defines() -> None:
    once = script_steps(DEFINES.replace('setting("WIDTH")', "3"))
    assert once < script_steps(DEFINES) < once + 20


def test_own_tests_go_both_ways() -> None:
    assert script_steps(OWN) > 1.5 * script_steps(DEFINES)


def test_what_other_files_decide_is_tried_where_something_is_on_the_tape() -> None:
    found = analysed({"/w/settings.py": SETTINGS, "/w/main.py": TRAINS}).events
    assert [(event.place.line, event.certain) for event in found] == [(9, False)]


@pytest.mark.parametrize("guard", ["", '\nif __name__ == "__main__":\n    print(WIDTH)\n'])
def test_functions_see_the_same_definitions_whether_or_not_the_file_may_run_as_a_script(guard: str) -> None:
    wrong = "\ndef spoil(x):\n    y = x.exp()\n    y += WIDTH\n    return y.sum().backward()\n"
    files = {"/w/settings.py": SETTINGS, "/w/main.py": DEFINES + wrong + guard}
    found = analysed(files)
    assert not found.limits
    assert [event.place.line for event in found.events] == [12]
    assert found.definitions is not None
    assert found.definitions.frame.variables["__name__"] == "module"


def test_a_function_with_a_cache_runs_once_for_the_same_arguments() -> None:
    def took(calls: str) -> int:
        files = {"/w/helpers.py": HELPERS, "/w/main.py": ASKS.format(name="ask", calls=calls)}
        return sum(one.steps for key, one in analysed(files).records.items() if key != "script")

    once, again, other = (
        took('looked_up("a")'),
        took('looked_up("a"); looked_up("a")'),
        took('looked_up("a"); looked_up("b")'),
    )
    assert again - once < 10 < other - once
