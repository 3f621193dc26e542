"""One selector leaves the list of a comment, and the others stay as they were written."""

from __future__ import annotations

import pytest

from gradguard.findings import Applicability, FixPlan, Span
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# gradguard: ignore[A, B, C] why", "# gradguard: ignore[B, C] why"),
        ("# gradguard: ignore[B, A, C]", "# gradguard: ignore[B, C]"),
        ("# gradguard: ignore[B, C, A]", "# gradguard: ignore[B, C]"),
        ("# gradguard: ignore[ B , A ]", "# gradguard: ignore[ B ]"),
        ("# gradguard: ignore[B A]", "# gradguard: ignore[B]"),
        ("# gradguard: ignore[A,A,B]", "# gradguard: ignore[B]"),
        ("# gradguard: ignore[B, A, A]", "# gradguard: ignore[B]"),
        ("# gradguard: ignore[A, B, A]", "# gradguard: ignore[B]"),
        ("# gradguard: ignore[AA, A, BA, A-B]", "# gradguard: ignore[AA, BA, A-B]"),
        ("# gradguard: ignore[A]", ""),
        ("# gradguard: ignore[ A, A ]", ""),
    ],
)
def test_a_selector_is_removed(before: str, after: str) -> None:
    source = Source("train.py", f"x = 1  {before}\n")
    mark = before.partition("]")[0] + "]"
    span = Span(1, 8, 1, 8 + len(mark))
    made = edits(FixPlan("remove-ignore", "", Applicability.SAFE, span, (("selector", "A"),)), source)
    assert made is not None
    assert applied(source, made) == f"x = 1  {after}".rstrip() + "\n"


def test_a_selector_that_is_gone_changes_nothing() -> None:
    source = Source("train.py", "x = 1  # gradguard: ignore[B, AA]\n")
    plan = FixPlan("remove-ignore", "", Applicability.SAFE, Span(1, 8, 1, 34), (("selector", "A"),))
    assert edits(plan, source) is None
