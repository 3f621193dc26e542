"""Code lenses: at each `backward()`, how many tensors stay saved for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.findings import Span
from gradguard.ide.analysis import Analysis
from gradguard.ide.wording import Wording

if TYPE_CHECKING:
    from gradguard.engine.domain.facts import Facts

MAX_OPS = 4


@dataclass(frozen=True, slots=True)
class Lens:
    """A line of text above a stretch of the program."""

    span: Span
    title: str


def lenses(analysis: Analysis, facts: Facts, wording: Wording) -> tuple[Lens, ...]:
    """Lenses of a program, in order."""
    present = set(ast.walk(analysis.source.tree))
    found = []
    for node, walked in facts.walked.items():
        if node not in present:
            continue
        ops = list(dict.fromkeys(kept.op for kept in walked.kept))
        named = ", ".join(ops[:MAX_OPS]) + (", …" if len(ops) > MAX_OPS else "")
        key = "lens-one" if len(walked.kept) == 1 else "lens-many"
        found.append(Lens(analysis.source.span(node), wording.text(key, count=len(walked.kept), ops=named)))
    return tuple(sorted(found, key=lambda each: each.span))
