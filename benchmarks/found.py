"""What the checker says of released libraries, finding by finding: `results/findings.tsv`, and how two runs differ.

A line is `library file line code severity`, separated by tabs, so that git shows the difference of two runs as well.
What was read of them, and whether it is true, stands in `results/read.toml`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks import reading

NAME = "findings.tsv"
LOUD = ("error", "warning")
"""Severities that a user is disturbed by; such findings are read."""

Checked = Mapping[str, Collection[str]]
"""The files that a run has checked, by library."""


class Finding(NamedTuple):
    """One finding in a release such as `timm 1.0.31`, its file relative to the folder of the library."""

    library: str
    file: str
    line: int
    code: str
    severity: str

    @property
    def verdict(self) -> bool | None:
        """Whether it is true, as it was read; None if nobody has read it."""
        return reading.verdicts(self.library).get((self.file, self.line, self.code))


def load(folder: Path) -> list[Finding]:
    """The findings that are kept in a folder."""
    path = folder / NAME
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [
        Finding(library, file, int(line), code, severity)
        for library, file, line, code, severity in (each.split("\t") for each in lines)
    ]


def save(findings: Iterable[Finding], folder: Path) -> None:
    """Keep them in a folder, sorted."""
    text = "".join("\t".join(map(str, finding)) + "\n" for finding in sorted(findings))
    (folder / NAME).write_text(text, "utf-8")


def merged(before: Iterable[Finding], after: Iterable[Finding], checked: Checked) -> list[Finding]:
    """The findings of a run, and earlier ones in files that it has not checked."""
    return [*(each for each in before if each.file not in checked.get(each.library, ())), *after]


@dataclass(frozen=True, slots=True)
class Change:
    """One place at which two runs say something else: `was` and `now` are severities, empty where nothing is said."""

    finding: Finding
    was: tuple[str, ...]
    now: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """A true finding is lost or no longer disturbs, or one disturbs that is not known to be true."""
        true = self.finding.verdict
        quieter = not self.now or (_loud(self.was) and not _loud(self.now))
        louder = _loud(self.now) and not _loud(self.was)
        return (quieter and true is True) or (louder and true is not True)

    def __str__(self) -> str:
        verdict = {True: "true", False: "false", None: "not read"}[self.finding.verdict]
        was, now = (", ".join(severities) or "nothing" for severities in (self.was, self.now))
        place = f"{self.finding.file}:{self.finding.line} {self.finding.code}"
        return f"{'WORSE ' if self.worse else ''}{self.finding.library}: {place}: {was} -> {now} ({verdict})"


def _loud(severities: Iterable[str]) -> bool:
    return any(each in LOUD for each in severities)


def compared(before: Iterable[Finding], after: Iterable[Finding], checked: Checked) -> list[Change]:
    """What has changed in the files that a run has checked: what is worse first, then by place."""
    places: dict[Finding, tuple[list[str], list[str]]] = {}
    for side, findings in enumerate((before, after)):
        for each in findings:
            if each.file in checked.get(each.library, ()):
                here = places.setdefault(each._replace(severity=""), ([], []))
                here[side].append(each.severity)
    changes = [
        Change(place, tuple(sorted(was)), tuple(sorted(now)))
        for place, (was, now) in places.items()
        if sorted(was) != sorted(now)
    ]
    return sorted(changes, key=lambda change: (not change.worse, change.finding))
