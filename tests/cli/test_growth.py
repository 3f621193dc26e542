"""What a report costs grows with its findings and their places, not with the square of their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gradguard.check.catalogue import catalogue
from gradguard.cli.fingerprints import fingerprints
from gradguard.cli.formats import github, gitlab, json, sarif, text
from gradguard.cli.result import Outcome
from gradguard.findings import Finding, Limit, Related, Span
from gradguard.report import findings
from gradguard.report.findings import LineOf
from tests.cli.outcomes import SAVED
from tests.counting import LINEAR, growth

FORMATS: dict[str, Callable[[Outcome, LineOf], object]] = {
    "text": lambda outcome, line_of: list(text.render(outcome, line_of, statistics=True)),
    "json": lambda outcome, _: json.document(outcome),
    "sarif": lambda outcome, line_of: sarif.render(outcome, line_of, catalogue().rules, str, str),
    "github": lambda outcome, _: github.render(outcome),
    "gitlab": lambda outcome, line_of: gitlab.render(outcome, line_of),
}


def many(count: int) -> tuple[Finding, ...]:
    return tuple(replace(SAVED, span=Span(line, 1, line, 9)) for line in range(1, count + 1))


def many_places(count: int) -> tuple[Finding, ...]:
    places = (Related(SAVED.path, Span(line, 1, line, 5), "saved here") for line in range(1, count + 1))
    return (replace(SAVED, related=tuple(places)),)


def places_on_one_line(count: int) -> tuple[Finding, ...]:
    places = (Related(SAVED.path, Span(1, at, 1, at + 5), "saved here") for at in range(1, count + 1))
    return (replace(SAVED, related=tuple(places)),)


def on_one_line(count: int) -> tuple[Finding, ...]:
    return tuple(replace(SAVED, span=Span(1, at, 1, at + 9)) for at in range(1, count + 1))


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())
@pytest.mark.parametrize("made", [many, many_places, places_on_one_line, on_one_line])
def test_reports(
    form: Callable[[Outcome, LineOf], object], made: Callable[[int], tuple[Finding, ...]]
) -> None:
    def rendered(count: int) -> Callable[[], object]:
        limits = tuple(
            Limit("a.py", Span(line, 1, line, 1), "m", "Traceback") for line in range(1, count + 1)
        )
        outcome = Outcome(made(count), limits=limits)
        return lambda: form(outcome, lambda path, line: "y.add_(1); " * count)

    assert growth(rendered, 100) < LINEAR


def test_marks_are_what_they_were() -> None:
    """A baseline that was written once holds for ever."""
    lines = ["y.add_(1)", "  y.add_(1)", "z  = 漢字"]
    found = [replace(SAVED, path="a.py", span=Span(line, 1, line, 2)) for line in (1, 2, 2, 3)]
    assert fingerprints(found, lambda path, line: lines[line - 1]) == [
        "70a19655301ccfe7dd768e8326920a8b",
        "c8bf41ee9f8c6399db444221f91347c6",
        "f15ab7124304ed81e7afe389859cac0a",
        "8ec2a4e919be4e8958feeb1097266b91",
    ]


def test_a_long_line_is_read_once_for_all_its_findings() -> None:
    asked = []

    def line_of(path: str, line: int) -> str:
        asked.append(line)
        return "y.add_(1); " * 100_000

    found = [replace(SAVED, span=Span(1, at, 1, at + 9)) for at in range(1, 3000)]
    assert len(set(fingerprints(found, line_of))) == 2999
    assert len(asked) == 1


def test_a_long_line_is_shown_as_far_as_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    own = findings._show
    monkeypatch.setattr(findings, "_show", lambda part: shown.append(len(part)) or own(part))
    line = "\t" * 10 + "y.add_(1); " * 100_000
    (finding,) = places_on_one_line(50)
    list(text.render(Outcome((finding,)), lambda path, number: line))
    assert max(shown) <= findings.MEASURED
