"""What a rule is, and what it can use to put an event into words."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradguard.engine import Analysis
from gradguard.engine.domain.events import (
    BrokenGraph,
    Event,
    InferenceSaved,
    RefusedWrite,
    SavedTensorMutated,
    SecondBackward,
)
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Certainty, Finding, Related, Severity, Span
from gradguard.source.printable import quotable

Render = Callable[["Context", Event], "Finding | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `render` returns None for an event that is another rule's."""

    code: str
    name: str
    summary: str
    events: tuple[type[Event], ...]
    render: Render
    on: bool = True
    """False: reported only when asked for by name, code or level."""


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and the event that it puts into words."""

    finding: Finding
    event: Event


@dataclass(frozen=True, slots=True)
class Context:
    """One analysis, with the means to make findings from its events."""

    analysis: Analysis
    rule: Rule

    def finding(
        self,
        event: Event,
        message: str,
        *,
        severity: tuple[Severity, Severity],
        related: Sequence[tuple[Place | None, str]] = (),
        at: Place | None = None,
        notes: Sequence[str] = (),
    ) -> Finding:
        """A finding at the event's place. `severity`: (when certain, when likely)."""
        place = at or event.place
        handler = event.caught if raises(event) else None
        related = [*related, (handler, "the program catches the error here")]
        certainty = {True: Certainty.CERTAIN, False: Certainty.LIKELY, None: Certainty.POSSIBLE}[
            event.certain
        ]
        return Finding(
            path=place.path,
            span=self.span(place),
            code=self.rule.code,
            name=self.rule.name,
            severity=Severity.INFORMATION
            if handler is not None
            else severity[0]
            if event.certain
            else severity[1],
            certainty=certainty,
            message=shortened(message),
            related=tuple(
                Related(where.path, self.span(where), shortened(text))
                for where, text in related
                if where is not None and _has_place(where)
            ),
            notes=tuple(notes),
        )

    def span(self, place: Place) -> Span:
        """Span of a place; of a compound statement only its first line."""
        span = self.analysis.span(place)
        if isinstance(
            place.node,
            (
                ast.FunctionDef,
                ast.AsyncFunctionDef,
                ast.For,
                ast.While,
                ast.With,
                ast.If,
                ast.ClassDef,
                ast.ExceptHandler,
            ),
        ):
            source = self.analysis.sources[place.path]
            return Span(span.line, span.column, span.line, len(source.line(span.line)) + 1)
        return span


def raises(event: Event) -> bool:
    """Whether an event is an error of torch."""
    if isinstance(event, SavedTensorMutated):
        return event.write.counted
    if isinstance(event, BrokenGraph):
        return event.raises
    return isinstance(event, (RefusedWrite, InferenceSaved, SecondBackward))


def _has_place(place: Place) -> bool:
    return hasattr(place.node, "lineno") and bool(place.path)


ERROR = (Severity.ERROR, Severity.WARNING)
WARNING = (Severity.WARNING, Severity.WARNING)
INFORMATION = (Severity.INFORMATION, Severity.INFORMATION)


LONGEST = 80
"""Characters of a name or expression of the program that a message quotes."""
_LONG = re.compile(rf"`([^`]{{{LONGEST - 1}}})[^`]{{2,}}`")


def shortened(message: str) -> str:
    """A message in which no name is so long that nobody reads the rest."""
    return _LONG.sub(r"`\1…`", message)


def quoted(text: str, fallback: str = "this tensor") -> str:
    """A tensor's name in a message."""
    return f"`{quotable(text)}`" if text else fallback


def role_name(role: str) -> str:
    """`result` and `input` as people say it."""
    if role.startswith("result"):
        return "its result"
    return {"self": "its input", "input": "its input"}.get(role, f"its `{role}`")
