"""The steps of a file are shared out: a long one is read to its last function, and what it costs is told."""

from __future__ import annotations

import ast
import random
from dataclasses import replace

import pytest

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import Analysis, analyse
from gradguard.engine.domain.events import SavedTensorMutated
from gradguard.engine.driver import entry, shares
from gradguard.engine.driver.shares import Budget, Shares
from gradguard.ops import table
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES, analysed

STEPS = 20_000

HEAVY = """
def heavy_{n}(x, settings):
    kept = [{n}]
    for step in range(9):
        if settings.first:
            kept.append(step)
        if settings.second:
            kept.pop()
        if settings.third:
            kept.append(2 * step)
    return x.exp(), kept

"""
SPOILS = """
def spoils(settings):
    x = torch.rand(3, requires_grad=True)
    y = x.exp()
    if settings.late:
        y += 1
    kept = []
    for step in range(9):
        if settings.first:
            kept.append(step)
        if settings.second:
            kept.append(step)
        if settings.third:
            kept.append(2 * step)
    return y.sum().backward()
"""
MANY = "import torch\n" + "".join(HEAVY.format(n=n) for n in range(60))


@pytest.fixture
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "FILE_STEPS", STEPS)
    monkeypatch.setattr(shares, "LINE_STEPS", 1)
    monkeypatch.setattr(shares, "KEPT_BACK", 250)


def messages(analysis: Analysis) -> list[str]:
    """Limits of a file."""
    return [limit.message for limit in analysis.limits]


def took(analysis: Analysis) -> list[int]:
    """Steps of each function, in order of the file."""
    return [one.steps for key, one in analysis.records.items() if isinstance(key, ast.FunctionDef)]


def test_a_file_within_its_budget_is_read_whole() -> None:
    found = analysed(MANY)
    assert sum(took(found)) > 2 * STEPS
    assert not found.limits


@pytest.mark.usefixtures("_few_steps")
def test_a_file_takes_no_more_than_its_budget_and_its_last_function_is_read() -> None:
    found = analysed(MANY)
    assert sum(took(found)) <= STEPS
    assert len(took(found)) == 60
    assert not any(one.stopped for one in found.records.values())
    assert min(took(found)) > STEPS // 60 // 3


@pytest.mark.usefixtures("_few_steps")
def test_what_is_not_tried_is_told_once_with_the_number_of_functions() -> None:
    found = analysed(MANY)
    cut = sum(one.cut for one in found.records.values())
    assert cut > 30
    assert messages(found) == [
        f"read in part: some ways through {cut} functions are not tried, the file needs more steps than the budget allows"
    ]
    assert found.limits[0].span.line == 1


@pytest.mark.usefixtures("_few_steps")
def test_a_function_that_is_stopped_for_the_file_is_told_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "FILE_STEPS", 3_000)
    found = analysed(MANY)
    stopped = [
        key.lineno for key, one in found.records.items() if one.stopped and isinstance(key, ast.FunctionDef)
    ]
    told = [
        limit.span.line for limit in found.limits if limit.message.startswith("stopped early: the file needs")
    ]
    assert told == stopped != []


@pytest.mark.usefixtures("_few_steps")
def test_a_mistake_is_not_certain_where_ways_are_not_tried() -> None:
    def verdicts(text: str) -> list[bool | None]:
        return [event.certain for event in analysed(text).events if isinstance(event, SavedTensorMutated)]

    always = SPOILS.replace("    if settings.late:\n        y += 1", "    y += 1")
    assert verdicts("import torch\n" + always) == [True]
    assert verdicts(MANY + always) == [False]


def test_shares_follow_length_and_what_is_not_used_goes_on() -> None:
    body = "    pass\n" * 20
    tree = ast.parse(f"def short():\n    pass\n\ndef long():\n{body}\ndef last():\n    pass\n")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    spared, used = Shares(30, functions, 0), Shares(30, functions, 0)
    for one in (spared, used):
        one.spend(shares.FILE_STEPS // 3, {})
    first = spared.following(), used.following()
    assert first[0] == first[1]
    used.spend(50_000, {"Net": 100_000})
    second = spared.following(), used.following()
    assert second[0].tries > 2 * first[0].tries
    assert second[0].tries > second[1].tries
    for _ in range(2):
        spared.spend(10, {"Net": 100_000})
    used.spend(10, {"Net": 100_000})
    third = spared.following(), used.following()
    assert third[0].tries > third[1].tries > 0
    assert third[0].tries > 60_000


def test_some_steps_are_for_whoever_comes_first() -> None:
    functions = [
        node for node in ast.parse("def a(): pass\n" * 400).body if isinstance(node, ast.FunctionDef)
    ]
    several = Shares(400, functions, 0)
    assert min(several.following().tries, several.following().whole) > 50_000
    several.spend(shares.FILE_STEPS // 2, {})
    assert several.following().whole < 2_000


def test_a_script_leaves_half_to_the_functions() -> None:
    functions = [node for node in ast.parse("def one(): pass").body if isinstance(node, ast.FunctionDef)]
    assert Shares(1, functions, 10**9).following().whole >= shares.FILE_STEPS // 3


@pytest.mark.parametrize(
    ("budget", "other", "steps", "stopped", "stands"),
    [
        (Budget(100, 200), Budget(100, 200), 150, False, True),
        (Budget(100, 200), Budget(90, 200), 80, False, True),
        (Budget(100, 200), Budget(90, 200), 95, False, False),
        (Budget(100, 200), Budget(100, 120), 110, False, True),
        (Budget(100, 200), Budget(100, 120), 150, False, False),
        (Budget(100, 200), Budget(100, 300), 200, True, False),
    ],
)
def test_when_an_answer_stands_with_another_budget(
    budget: Budget, other: Budget, steps: int, stopped: bool, stands: bool
) -> None:
    known = next(iter(analysed("import torch\n").records.values()))
    assert replace(known, budget=budget, steps=steps, stopped=stopped).holds_for(other) is stands


@pytest.mark.usefixtures("_few_steps")
def test_an_edited_file_gets_its_shares_as_a_cold_run_does() -> None:
    chance = random.Random(7)
    rows = table.load()
    blocks = ["import torch\n", *(HEAVY.format(n=n) for n in range(25)), SPOILS]
    source = Source("program.py", "".join(blocks))
    before = analyse(source, rows, NO_FILES)
    for _ in range(12):
        at = chance.randrange(1, len(blocks))
        line = chance.choice(["    x = x + 1\n", "    if settings.more:\n        x = x.exp()\n", ""])
        blocks[at] = (HEAVY.format(n=at) if at < 26 else SPOILS).replace("    return", line + "    return")
        source = Source("program.py", "".join(blocks), source)
        before = analyse(source, rows, NO_FILES, before)
        cold = analyse(Source("program.py", source.text), rows, NO_FILES)
        assert before.limits == cold.limits
        assert [(one.steps, one.cut, one.stopped) for one in before.records.values()] == [
            (one.steps, one.cut, one.stopped) for one in cold.records.values()
        ]


def test_reading_imported_modules_counts_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    remark = "# what is said here is read, too\n" * 200
    files = {f"/w/part_{n}.py": f"{remark}def made(x):\n    return x.exp()\n" for n in range(20)}
    uses = "".join(f"from part_{n} import made as made_{n}\n" for n in range(20))
    calls = "".join(f"def use_{n}(x):\n    return made_{n}(x)\n\n" for n in range(20))
    files["/w/main.py"] = f"import torch\n{uses}\n{calls}"
    workspace = ReadingWorkspace(files.__contains__, files.get)
    source = Source("/w/main.py", files["/w/main.py"])
    assert not analyse(source, table.load(), workspace).limits
    monkeypatch.setattr(entry, "IMPORT_STEPS", 1_000)
    told = messages(analyse(source, table.load(), workspace))
    assert told == ["imported modules are read in part: a top level needs more steps than the budget allows"]
