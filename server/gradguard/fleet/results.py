"""What checking a package gave, as it is kept: by content, so without the name and the place of the package."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from gradguard.check.api import Report
from gradguard.cli import plain
from gradguard.cli.fingerprints import fingerprints
from gradguard.cli.output import Lines
from gradguard.cli.worker import Checked, merged
from gradguard.findings import Applicability, Finding, Limit
from gradguard.fleet.model import Unread
from gradguard.fleet.packages import Package

FORMAT = 1
LONGEST = 4096
"""Characters of a line that are kept."""
_APPLIED = (Applicability.SAFE, Applicability.UNSAFE, Applicability.MANUAL)


@dataclass(frozen=True, slots=True)
class Result:
    """Paths are those from the root of the package."""

    findings: tuple[Finding, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    """For each finding its line, and as many before and after it as were asked for."""
    at: tuple[int, ...] = ()
    """For each finding which of these is its own."""
    limits: tuple[tuple[Limit, bool], ...] = ()
    """Where the analysis stopped early, and whether an internal error was the reason."""
    unread: tuple[Unread, ...] = ()
    files: int = 0
    torch_files: int = 0
    loc: int = 0
    seconds: float = 0.0

    def marks(self, package: str) -> list[str]:
        """A fingerprint for each finding that stays the same while other lines of its file come and go."""
        own = {
            (finding.path, finding.span.line): lines[at]
            for finding, lines, at in zip(self.findings, self.lines, self.at)
        }
        return fingerprints(
            self.findings, lambda path, line: own.get((path, line), ""), lambda path: f"{package}/{path}"
        )

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity, code and the two together."""
        return Counter(f"{each.severity.value} {each.code}" for each in self.findings)

    def data(self) -> bytes:
        """As it is kept."""
        document = {
            "format": FORMAT,
            "findings": [plain.from_finding(each) for each in self.findings],
            "lines": [list(each) for each in self.lines],
            "at": list(self.at),
            "limits": [[plain.from_limit(limit), fault] for limit, fault in self.limits],
            "unread": [[each.path, each.why] for each in self.unread],
            "counts": [self.files, self.torch_files, self.loc, self.seconds],
        }
        return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)

    @classmethod
    def of(cls, data: bytes) -> Result:
        """What `data` gave. Raises ValueError on anything else."""
        try:
            document: dict[str, Any] = json.loads(zlib.decompress(data))
            if document["format"] != FORMAT:
                raise ValueError("another format")
            files, torch_files, loc, seconds = document["counts"]
            return cls(
                tuple(map(plain.to_finding, document["findings"])),
                tuple(tuple(map(str, each)) for each in document["lines"]),
                tuple(map(int, document["at"])),
                tuple((plain.to_limit(limit), bool(fault)) for limit, fault in document["limits"]),
                tuple(Unread(str(path), str(why)) for path, why in document["unread"]),
                int(files),
                int(torch_files),
                int(loc),
                float(seconds),
            )
        except (zlib.error, KeyError, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from None


def fixable(finding: Finding) -> str:
    """The best that any of its fixes promises; empty without one."""
    offered = {plan.applicability for plan in finding.fixes}
    return next((each.value for each in _APPLIED if each in offered), "")


class Collected:
    """Answers about the files of a package, as they come."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._checked: dict[int, Checked] = {}
        self._unread: list[Unread] = list(package.unread)
        self._limits: dict[Limit, bool] = {}
        self._imported: dict[str, Unread] = {}
        self._seconds = 0.0
        self._lost: set[int] = set()

    def take(self, answer: dict[str, Any]) -> None:
        """The answer about one file. Raises ValueError."""
        index = int(answer["file"])
        kept = plain.to_kept(answer["kept"])
        path = self._package.path(self._package.checked[index])
        self._checked[index] = Checked(path, kept.report, uses_torch=bool(answer["torch"]))
        self._seconds += float(answer["seconds"])
        name = self._package.checked[index]
        self._unread += [
            Unread(name, f"line {line}: {message}" if line else message) for message, line in kept.troubles
        ]
        if answer["unread"]:
            self._lost.add(index)
        faults = set(answer["faults"])
        for number, limit in enumerate(kept.report.limits):
            own = replace(limit, path=self._package.name(limit.path))
            self._limits.setdefault(own, number in faults)
        for where, why in answer["imported"]:
            self._imported.setdefault(where, Unread(self._package.name(where), why))

    def lost(self, index: int, why: str) -> None:
        """There is none about this file."""
        self._unread.append(Unread(self._package.checked[index], why))
        self._lost.add(index)

    def result(self, context: int) -> Result:
        """All of it together."""
        package = self._package
        found = merged([self._checked.get(index, Checked("", Report())) for index in sorted(self._checked)])
        texts: dict[str, Lines] = {}
        lines: list[tuple[str, ...]] = []
        at: list[int] = []
        for finding in found:
            if finding.path not in texts:
                data = package.files.get(package.name(finding.path), b"")
                texts[finding.path] = Lines.of(finding.path, data)
            first = max(1, finding.span.line - context)
            numbers = range(first, finding.span.line + context + 1)
            lines.append(tuple(texts[finding.path].line(number)[:LONGEST] for number in numbers))
            at.append(finding.span.line - first)
        told = {each.path for each in self._unread}
        imported = [each for each in self._imported.values() if each.path not in told]
        return Result(
            tuple(_renamed(finding, package) for finding in found),
            tuple(lines),
            tuple(at),
            tuple(self._limits.items()),
            (*self._unread, *imported),
            len(package.checked) - len(self._lost),
            sum(each.uses_torch for each in self._checked.values()),
            sum(package.files[name].count(b"\n") for name in package.checked),
            self._seconds,
        )


def _renamed(finding: Finding, package: Package) -> Finding:
    related = tuple(replace(each, path=package.name(each.path)) for each in finding.related)
    return replace(finding, path=package.name(finding.path), related=related)
