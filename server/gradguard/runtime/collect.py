"""Collects observed findings: one per place and code, with how often it was seen."""

from __future__ import annotations

from collections.abc import Iterable

from gradguard.findings import Certainty, Finding, Related, Severity, Span
from gradguard.runtime import lines
from gradguard.runtime.frames import Place

NAMES = {
    "GG101": "inplace-on-saved-tensor",
    "GG102": "inplace-on-leaf",
    "GG103": "inplace-on-restricted-view",
    "GG104": "inplace-on-expanded-tensor",
    "GG105": "untracked-mutation",
    "GG106": "step-before-backward",
    "GG107": "inference-tensor-in-autograd",
    "GG108": "custom-function-mutation",
    "GG109": "inplace-on-function-output",
    "GG110": "hook-writes-gradient",
    "GG112": "gradient-alias",
    "GG201": "accumulate-with-graph",
    "GG202": "store-with-graph",
    "GG203": "backward-through-freed-graph",
    "GG204": "graph-built-for-nothing",
    "GG205": "broken-graph",
    "GG206": "needless-retain-graph",
    "GG207": "create-graph-cycle",
    "GG208": "context-keeps-tensor",
    "GG209": "hook-registered-again",
    "GG210": "device-tensors-pile-up",
    "GG301": "item-in-loop",
    "GG302": "implicit-sync-in-loop",
    "GG303": "item-in-compiled-code",
    "GG304": "copy-to-device-in-loop",
}

Where = Place | tuple[str, int] | None


class Findings:
    """Findings in the order in which they were seen; `sorted` gives the order in which they are shown."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str], Finding] = {}
        # The same place is often reported in every pass, and to locate it takes long.
        self._told: set[tuple[Where, str]] = set()

    def add(
        self,
        code: str,
        where: Where,
        message: str,
        severity: Severity,
        related: Iterable[tuple[Where, str]] = (),
        notes: Iterable[str] = (),
    ) -> bool:
        """Whether this is the first finding of its code at its line; places that are unknown are left out."""
        if (where, code) in self._told:
            return False
        self._told.add((where, code))
        placed = _locate(where)
        if placed is None:
            return False
        path, span = placed
        key = (path, span.line, code)
        if key in self._found:
            return False
        known = []
        for place, text in related:
            located = _locate(place)
            if located is not None:
                known.append(Related(located[0], located[1], text))
        self._found[key] = Finding(
            path,
            span,
            code,
            NAMES[code],
            severity,
            Certainty.OBSERVED,
            message,
            tuple(known),
            notes=tuple(notes),
        )
        return True

    def has(self, code: str, line: int | None = None) -> bool:
        return any(c == code and line in (None, n) for _, n, c in self._found)

    def sorted(self) -> tuple[Finding, ...]:
        return tuple(sorted(self._found.values(), key=lambda f: f.sort_key))


def _locate(where: Where) -> tuple[str, Span] | None:
    if where is None:
        return None
    if isinstance(where, Place):
        return (where.path, lines.span_of(where)) if where.line else None
    path, line = where
    return path, lines.whole_line(path, line)
