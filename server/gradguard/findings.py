"""What every face of gradguard reports: findings, their places and the fixes they offer.

Lines and columns count from 1; columns are code points. `end_column` is exclusive. All values are
frozen, so they can be cached, compared and sent between threads.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Severity(str, Enum):
    """How loud a finding is; the four levels of the language server protocol."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"

    @property
    def rank(self) -> int:
        """0 for error up to 3 for hint."""
        return _RANKS[self]


_RANKS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFORMATION: 2, Severity.HINT: 3}


class Certainty(str, Enum):
    """How sure the engine is.

    CERTAIN: every surviving path does it and no needed fact was unknown.
    LIKELY: some path does it, or one needed fact is inferred from convention.
    POSSIBLE: depends on unknown calls; shown on hover and with `--all` only.
    OBSERVED: seen by the runtime monitor in a real run.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
    OBSERVED = "observed"


class Applicability(str, Enum):
    """SAFE keeps values and gradients; UNSAFE may change numbers; MANUAL is shown, never applied by fix-all."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text."""

    line: int
    column: int
    end_line: int
    end_column: int

    def plain(self) -> dict[str, int]:
        """As the JSON reports have it."""
        return {
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
        }

    def holds(self, inner: Span) -> bool:
        """Whether another stretch lies in this one; each lies in itself."""
        starts = (self.line, self.column) <= (inner.line, inner.column)
        return starts and (inner.end_line, inner.end_column) <= (self.end_line, self.end_column)


def spans_text(*spans: Span) -> str:
    """The text that `FixPlan.data` carries spans in."""
    return ";".join(f"{s.line}:{s.column}:{s.end_line}:{s.end_column}" for s in spans)


def spans_of(text: str) -> list[Span]:
    """The spans of such a text."""
    return [Span(*map(int, part.split(":"))) for part in text.split(";") if part]


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that explains a finding, such as the op that saved the tensor."""

    path: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class FixPlan:
    """What a fix would do, decided by the rule; `fixes` turns it into edits when asked.

    kind: a name known to `gradguard.fixes` (`out-of-place`, `detach`, `no-grad`, ...).
    span: the statement or expression the fix works on.
    data: what the kind needs besides, as sorted name/value pairs of plain strings.
    """

    kind: str
    title: str
    applicability: Applicability
    span: Span
    data: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One reported mistake at its line."""

    path: str
    span: Span
    code: str
    name: str
    severity: Severity
    certainty: Certainty
    message: str
    related: tuple[Related, ...] = ()
    fixes: tuple[FixPlan, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sort_key(self) -> tuple[str, Span, str, str]:
        """The one order in which findings are shown everywhere."""
        return (self.path, self.span, self.code, self.message)

    def plain(self, shown: Callable[[str], str] = str) -> dict[str, Any]:
        """As the JSON reports have it, all but the fixes. `shown` gives the path that a reader sees."""
        return {
            "file": shown(self.path),
            "code": self.code,
            "name": self.name,
            "severity": self.severity.value,
            "certainty": self.certainty.value,
            **self.span.plain(),
            "message": self.message,
            "related": [
                {"file": shown(each.path), **each.span.plain(), "message": each.message}
                for each in self.related
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Limit:
    """A place where the analysis stopped early, so that silence there is not a promise."""

    path: str
    span: Span
    message: str
    fault: str = field(default="", compare=False)
    """Traceback of the mistake in gradguard itself that stopped it; empty where it is not meant to go further."""

    def plain(self, shown: Callable[[str], str] = str) -> dict[str, Any]:
        """As the JSON reports have it."""
        return {
            "file": shown(self.path),
            **self.span.plain(),
            "message": self.message,
            "internal_error": bool(self.fault),
        }


def internal_error(error: BaseException) -> str:
    """What is said of a mistake in gradguard itself, the same wherever it shows. The program's own words are left out."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = f" in {last.tb_frame.f_code.co_name}" if last is not None else ""
    return f"internal error {type(error).__name__}{where}; please report it"


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception, for the log; never empty. What its frames hold is let go where memory is short."""
    if isinstance(error, MemoryError):
        traceback.clear_frames(error.__traceback__)
    try:
        return "".join(traceback.format_exception(error))
    except (MemoryError, RecursionError):
        return f"{type(error).__name__}\n"
