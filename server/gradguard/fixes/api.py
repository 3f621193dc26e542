"""From the plan of a fix to its edits."""

from __future__ import annotations

from collections.abc import Mapping

from gradguard.findings import FixPlan
from gradguard.fixes import parser
from gradguard.fixes.edit import Edit
from gradguard.source.text import Source

try:
    parser.ensure()
    from gradguard.fixes.kinds import KINDS, Maker
except ModuleNotFoundError as error:
    if error.name != "libcst":
        raise
    KINDS: Mapping[str, Maker] = {}  # type: ignore[no-redef]

__all__ = ["KINDS", "Edit", "edits", "problem"]

MAX_LINE = 5_000
"""Characters of the longest line that a fix is written into: each writes all statements of the line anew."""


def problem() -> str | None:
    """Why no fix can be written here, None where all is well."""
    return None if KINDS else "fixes cannot be written: libcst is not installed for this Python"


def edits(plan: FixPlan, source: Source) -> tuple[Edit, ...] | None:
    """The edits of a fix in the file it is for, in reading order; None where it cannot be made there.

    They do not overlap, carry the file's own line ends and leave everything else as it is.
    """
    if len(source.line(plan.span.line)) > MAX_LINE:
        return None
    maker = KINDS.get(plan.kind)
    made = maker(plan, source) if maker is not None else None
    return tuple(sorted(made)) if made else None
