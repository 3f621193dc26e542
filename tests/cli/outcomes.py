"""An outcome of a run with everything that a format has to write, made by hand."""

from __future__ import annotations

from gradguard.cli.result import Outcome, Trouble
from gradguard.findings import (
    Applicability,
    Certainty,
    Finding,
    FixPlan,
    Limit,
    Related,
    Severity,
    Span,
)

FILES = {
    "src/train, v2.py": [
        "import torch",
        "x = torch.ones(2, requires_grad=True)",
        "y = torch.sigmoid(x)",
        "\ty.add_(1)  # 漢字",
        "y.sum().backward()",
        "",
        "total += loss",
    ],
    "src/model.py": ["class Net:", "    pass"],
}


def line_of(path: str, number: int) -> str:
    lines = FILES.get(path, [])
    return lines[number - 1] if 0 < number <= len(lines) else ""


SAVED = Finding(
    path="src/train, v2.py",
    span=Span(4, 2, 4, 11),
    code="GG101",
    name="inplace-on-saved-tensor",
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    message="`y.add_(1)` overwrites 100% of `y`, which sigmoid saved",
    related=(
        Related("src/train, v2.py", Span(3, 5, 3, 21), "saved here by sigmoid"),
        Related("src/model.py", Span(1, 1, 1, 11), "called from here"),
        Related("src/train, v2.py", Span(5, 1, 5, 19), "backward here"),
    ),
    fixes=(
        FixPlan("out-of-place", "write `y = y + 1`", Applicability.SAFE, Span(4, 2, 4, 11)),
        FixPlan("by-hand", "clone before", Applicability.MANUAL, Span(4, 2, 4, 11)),
    ),
    notes=("torch says: modified by an inplace operation",),
)
KEPT = Finding(
    path="src/train, v2.py",
    span=Span(7, 1, 7, 14),
    code="GG201",
    name="accumulate-with-graph",
    severity=Severity.WARNING,
    certainty=Certainty.LIKELY,
    message="`total` keeps the graph",
)
FAINT = Finding(
    path="src/model.py",
    span=Span(1, 1, 2, 5),
    code="GG301",
    name="item-in-loop",
    severity=Severity.HINT,
    certainty=Certainty.POSSIBLE,
    message="reads\nthe host",
)

OUTCOME = Outcome(
    findings=(FAINT, SAVED, KEPT),
    edits=((), (((Span(4, 2, 4, 11), "y = y + 1"),), None), ()),
    limits=(Limit("src/model.py", Span(2, 1, 2, 5), "too many paths"),),
    troubles=(Trouble("bad.py", "line 1: not UTF-8", 1),),
    files=9,
    checked=3,
    torch="2.13",
)
