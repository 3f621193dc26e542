"""Inlay hints: what autograd keeps, in the text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.findings import Finding, Span
from gradguard.ide.analysis import Analysis
from gradguard.ide.varhover import text
from gradguard.ide.wording import Wording, inline

if TYPE_CHECKING:
    from gradguard.engine.domain.facts import Fact, Facts

GRAPH_KEPT = frozenset(("GG201", "GG202"))
MAX_OPS = 2


@dataclass(frozen=True, slots=True)
class Hint:
    """A few words behind a stretch of text."""

    span: Span
    label: str
    tooltip: str = ""


def hints(
    analysis: Analysis, facts: Facts, findings: Iterable[Finding], wanted: Span, wording: Wording
) -> tuple[Hint, ...]:
    """Hints on the lines of a stretch, in order."""
    found = list(_of_names(analysis, facts, wording))
    for finding in findings:
        if finding.code in GRAPH_KEPT and finding.path == analysis.source.path:
            found.append(
                Hint(finding.span, wording.text("hint-graph-kept"), inline(wording.message(finding.message)))
            )
    inside = (each for each in found if wanted.line <= each.span.line <= wanted.end_line)
    return tuple(sorted(inside, key=lambda each: (each.span, each.label)))


def _of_names(analysis: Analysis, facts: Facts, wording: Wording) -> Iterator[Hint]:
    present = set(ast.walk(analysis.source.tree))
    for (statement, name), fact in facts.bound.items():
        if statement not in present:
            continue
        target = _target(statement, name)
        label = _label(fact, wording)
        if target is not None and label:
            yield Hint(analysis.source.span(target), label, text(fact, analysis, wording))


def _label(fact: Fact, wording: Wording) -> str:
    words = []
    ops = list(dict.fromkeys(kept.op for kept in fact.kept))
    if ops:
        more = "…" if len(ops) > MAX_OPS else ""
        words.append(wording.text("hint-saved", ops=", ".join(ops[:MAX_OPS]) + more))
    if fact.view_of:
        words.append(wording.text("hint-view", what=fact.view_of))
    return " · ".join(words)


def _target(statement: ast.AST, name: str) -> ast.Name | None:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [statement.target]
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for part in parts:
            if isinstance(part, ast.Name) and part.id == name:
                return part
    return None
