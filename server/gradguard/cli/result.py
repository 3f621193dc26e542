"""What a run hands to the formats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from gradguard.findings import Finding, Limit, Severity
from gradguard.ide.edits import Edits


class Unread(str, Enum):
    """What was not read."""

    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A file that could not be checked, wholly or in part."""

    path: str
    message: str
    line: int = 0
    lost: bool = False
    """An internal error cost the file."""
    unread: Unread | None = None
    """Nothing of this file, or of what lies in this folder, was read; None where the trouble came later."""
    named: bool = True
    """Whether it was asked for outright, not found in a folder or through an import."""

    @property
    def blocks(self) -> bool:
        """Whether the request was not fulfilled: what was only found costs itself."""
        return self.named or self.unread is None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything found by one run. Paths are as shown to the user."""

    findings: tuple[Finding, ...] = ()
    edits: tuple[tuple[Edits | None, ...], ...] = ()
    """For each finding, for each of its fixes; empty when the format needs none."""
    limits: tuple[Limit, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    files: int = 0
    """How many files were read."""
    checked: int = 0
    """How many of them use torch."""
    callers: int = 0
    """Files that import them and were read for what they show."""
    hidden: int = 0
    """Findings that stand in the baseline."""
    fixed: int = 0
    torch: str = ""
    strict: bool = False
    """Whether the run fails where anything was not read, or not analysed because of an internal error."""

    def edits_of(self, index: int) -> tuple[Edits | None, ...]:
        """Edits for the fixes of the finding with this index."""
        return self.edits[index] if self.edits else (None,) * len(self.findings[index].fixes)

    @property
    def failing(self) -> bool:
        """Whether a finding is a warning or worse."""
        return any(finding.severity.rank <= Severity.WARNING.rank for finding in self.findings)

    @property
    def faults(self) -> tuple[Limit, ...]:
        """What was not analysed to the end because of an internal error."""
        return tuple(limit for limit in self.limits if limit.fault)

    @property
    def parts_lost(self) -> tuple[Limit, ...]:
        """Those of files that were not lost whole, which is told as a trouble."""
        lost = {trouble.path for trouble in self.troubles if trouble.lost}
        return tuple(limit for limit in self.faults if limit.path not in lost)

    @property
    def blocked(self) -> bool:
        """Whether something could not be done that the request stands or falls with."""
        if self.strict:
            return bool(self.troubles or self.faults)
        return any(trouble.blocks for trouble in self.troubles)

    @property
    def unread(self) -> Counter[Unread]:
        """How many files and folders were not read."""
        return Counter(trouble.unread for trouble in self.troubles if trouble.unread)

    def counts(self) -> Counter[Severity]:
        """How many findings of each severity."""
        return Counter(finding.severity for finding in self.findings)
