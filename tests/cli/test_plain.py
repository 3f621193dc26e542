"""What is kept comes back as it was; anything else that JSON can say is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gradguard.check.settings import Settings
from gradguard.cli import output, plain
from gradguard.cli.arguments import FORMATS, parser
from gradguard.cli.cache import Cache
from gradguard.cli.result import Outcome, Trouble
from gradguard.cli.worker import Checked, Checker, Job
from tests.cli.running import RAISES

ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.0, 1e999, float("nan"), 10**30, "", "x", "\0", "\ud800", "GG101", [], [[]], [1], {}, {"path": 1},
)  # fmt: skip


class Answering:
    """A cache that has this entry."""

    def __init__(self, entry: object) -> None:
        self.entry = entry

    def get(self, key: str) -> object:
        return self.entry

    def put(self, key: str, entry: object) -> None:
        self.entry = entry


def checked(job: Job, cache: Answering) -> Checked:
    return Checker(cast(Cache, cache), with_edits=True).check(job)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A file whose entry has something in every field."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "helper.py").write_text("import torch\ndef scale(x):\n    x.mul_(2)\n    return x\n")
    text = RAISES.replace("y.add_(1)", "from helper import scale\nscale(y)\ny.add_(1)") + "\nx = (\n"
    (folder / "train.py").write_text(text)
    return Job(str(folder / "train.py"), Settings())


@pytest.fixture(scope="module")
def entry(job: Job) -> dict[str, Any]:
    cache = Answering(None)
    checked(job, cache)
    kept: dict[str, Any] = json.loads(json.dumps(cache.entry))
    assert {name for name, value in kept.items() if value} >= {
        "findings", "limits", "troubles", "resolved", "read",
    }, kept  # fmt: skip
    kept["needed"] = [[job.path, [1, 1, 1, 2]]]
    kept["elsewhere"] = copy.deepcopy(kept["findings"])
    return kept


def test_what_is_kept_comes_back(entry: dict[str, Any]) -> None:
    assert plain.from_kept(plain.to_kept(entry)) == entry


@given(ANYTHING)
@settings(max_examples=100, deadline=None)
def test_nothing_else_is_taken(data: object) -> None:
    for convert in (plain.to_kept, plain.to_finding):
        with pytest.raises(ValueError):  # noqa: PT011
            convert(data)


def changed(data: Any, put: Any) -> Iterator[Any]:
    """The data with each of its parts exchanged, left out, or joined by another."""
    yield put
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        for inner in changed(data[key], put):
            whole = copy.copy(data)
            whole[key] = inner
            yield whole
        whole = copy.copy(data)
        del whole[key]
        yield whole
    if isinstance(data, dict):
        yield {**data, "more": put}
    if isinstance(data, list):
        yield [*data, put]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_wrong_part_of_an_entry_makes_it_none_or_leaves_it_sound(
    odd: object, entry: dict[str, Any]
) -> None:
    refused = 0
    for forged in changed(entry, odd):
        try:
            kept = plain.to_kept(forged)
        except ValueError:
            refused += 1
            continue
        for finding in (*kept.report.findings, *kept.report.elsewhere):
            sound(finding)
        arguments = parser().parse_args(["check"])
        outcome = Outcome(
            findings=kept.report.findings,
            limits=kept.report.limits,
            troubles=tuple(Trouble("a.py", *each) for each in kept.troubles),
        )
        for arguments.format in FORMATS:
            text = output.render(outcome, arguments, lambda path, line: "y.add_(1)")
            assert output._encoded(text, arguments.format)
    assert refused > 100


def sound(value: object) -> None:
    """Every field of a value has the type that it is declared with."""
    assert is_dataclass(value)
    hints = get_type_hints(type(value))
    for field in fields(value):
        held = getattr(value, field.name)
        if isinstance(held, tuple):
            for each in held:
                assert type(each) in (str, tuple) or is_dataclass(each)
                if is_dataclass(each):
                    sound(each)
        elif is_dataclass(held):
            sound(held)
        else:
            assert type(held) is hints[field.name], (field.name, held)


def test_a_forged_entry_is_a_miss(job: Job, entry: dict[str, Any]) -> None:
    fresh = checked(job, Answering(None))
    assert fresh.report.findings
    for odd in (
        *ODD,
        {**entry, "findings": [{}]},
        {**entry, "read": [["\0", "x"]]},
        {**entry, "resolved": [["a", 9**9, "", "b"]]},
    ):
        cache = Answering(odd)
        assert checked(job, cache) == fresh
        assert plain.to_kept(json.loads(json.dumps(cache.entry)))


def test_what_was_forged_well_is_shown_and_no_more(job: Job, entry: dict[str, Any]) -> None:
    """Whoever may write into the folder of the user may do so; places and fixes that are not there do no harm."""
    forged = copy.deepcopy(entry)
    for finding in forged["findings"]:
        finding.update(path=str(Path(job.path).parent), span=[9999, 1, 9999, 9], code="GG999", name="of-mine")
        finding["fixes"] = [["of-mine", "do it", "safe", [9999, 1, 9999, 9], [["a", "b"]]]]
    done = checked(job, Answering(forged))
    assert {finding.code for finding in done.report.findings} == {"GG999"}
    assert not any(trouble.message.startswith("internal error") for trouble in done.troubles)
    assert [edits for finding, edits in done.edits if finding.code == "GG999"] == [()]
