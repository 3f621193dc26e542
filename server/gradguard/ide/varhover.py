"""The hover on a variable: its tape."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradguard.findings import Span
from gradguard.ide.analysis import Analysis
from gradguard.ide.nodes import At
from gradguard.ide.ophover import About
from gradguard.ide.wording import Wording, inline

if TYPE_CHECKING:
    from gradguard.engine.domain.facts import Fact, Facts, Kept

MAX_KEPT = 4


def fact_at(at: At, facts: Facts) -> tuple[ast.AST, Fact] | None:
    """The name under the cursor and what is known of it."""
    node = at.node
    if not isinstance(node, ast.Name):
        return None
    fact = facts.read.get(node)
    if fact is None and isinstance(node.ctx, ast.Store):
        for outer in reversed(at.path):
            fact = facts.bound.get((outer, node.id))
            if fact is not None or isinstance(outer, ast.stmt):
                break
    return (node, fact) if fact is not None else None


def hover(analysis: Analysis, at: At, facts: Facts | None, wording: Wording) -> About | None:
    """What the tape knows of the value under the cursor; None where it knows nothing."""
    found = fact_at(at, facts) if facts is not None else None
    if found is None:
        return None
    node, fact = found
    span: Span = analysis.source.span(node)
    return About(text(fact, analysis, wording), span)


def text(fact: Fact, analysis: Analysis, wording: Wording) -> str:
    """Markdown about one tensor."""
    grad = {True: "var-grad", False: "var-no-grad", None: "var-maybe-grad"}[fact.requires_grad]
    words = [wording.text("var-parameter" if fact.parameter else "var-tensor"), wording.text(grad)]
    if fact.leaf and fact.requires_grad:
        words.append(wording.text("var-leaf"))
    if fact.device:
        away = fact.device == "accelerator"
        words.append(wording.text("var-accelerator" if away else "var-device", device=fact.device))
    points = []
    if fact.recorded_by:
        points.append(wording.text("var-recorded", op=fact.recorded_by))
    if fact.view_of:
        points.append(wording.text("var-view", what=fact.view_of))
    if fact.inference:
        points.append(wording.text("var-inference"))
    if fact.version:
        key = "var-version-once" if fact.version == 1 else "var-version"
        points.append(wording.text(key, version=fact.version))
    for kept in fact.kept[:MAX_KEPT]:
        point = _kept(kept, fact, analysis, wording)
        if point is not None:
            points.append(point)
    if len(fact.kept) > MAX_KEPT:
        points.append(wording.text("var-more", count=len(fact.kept) - MAX_KEPT))
    if not fact.kept and fact.requires_grad is not False:
        points.append(wording.text("var-not-kept"))
    # Two ops of one line that keep it are one thing to know.
    points = [f"- {point}" for point in dict.fromkeys(points)]
    return "\n".join([f"**`{fact.name}`** {' · '.join(words)}", "", *points]).rstrip()


def _kept(kept: Kept, fact: Fact, analysis: Analysis, wording: Wording) -> str | None:
    """What keeps a tensor, by its line; None where that line is being typed."""
    here = kept.place.path == analysis.source.path
    line = kept.place.line
    if here:
        place = analysis.source.place(Span(line, 1, line, 1))
        if place is None:
            return None
        line = place.line
    key = "var-kept-moved" if kept.version < fact.version else "var-kept"
    shown = str(line) if here else f"{line} ({inline(kept.place.path.rsplit('/', 1)[-1])})"
    return wording.text(key, op=kept.op, line=shown, version=kept.version)
