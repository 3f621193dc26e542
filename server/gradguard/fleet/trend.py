"""Two scans compared by the fingerprints of their findings: what is new, what is gone, what was kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow.parquet as parquet

from gradguard.cli.refused import Refused
from gradguard.fleet.store import Store

_COLUMNS = ("package", "revision", "path", "line", "severity", "certainty", "message", "fingerprint")


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of a scan."""

    package: str
    revision: str
    path: str
    line: int
    code: str
    severity: str
    certainty: str
    message: str
    mark: str = field(compare=False, default="")

    @property
    def loud(self) -> bool:
        """Whether it is an error or a warning."""
        return self.severity in ("error", "warning")

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.package}: {self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What a scan has found, by fingerprint, and the packages that it read."""

    found: dict[str, Found]
    packages: frozenset[str]


@dataclass(frozen=True, slots=True)
class Trend:
    """What became of the findings of an earlier scan."""

    new: tuple[Found, ...]
    """In packages that the earlier one had read as well."""
    first: tuple[Found, ...]
    """In packages that it had not read."""
    gone: tuple[Found, ...]
    kept: int
    unread: tuple[Found, ...]
    """Of the earlier one, in packages that are not read now: nothing is known of them."""


def load(store: Store) -> Findings:
    """The findings of a scan that came to its end. Raises Refused."""
    if not store.has("scan.json"):
        raise Refused(f"{store.address}: no scan; name the folder that was given to --output")
    if not store.has("packages"):
        raise Refused(f"{store.address}: a scan that has not come to its end; run it again, and it goes on")
    system, top = store.filesystem()
    found: dict[str, Found] = {}
    for name in store.names("findings", ".parquet"):
        code = _partition(name)
        columns = parquet.read_table(
            f"{top}/{name}", filesystem=system, columns=list(_COLUMNS), partitioning=None
        )
        for package, revision, path, line, severity, certainty, message, mark in zip(
            *(columns[each].to_pylist() for each in _COLUMNS)
        ):
            found[mark] = Found(package, revision, path, line, code, severity, certainty, message, mark)
    packages: set[str] = set()
    for name in store.names("packages", ".parquet"):
        table = parquet.read_table(f"{top}/{name}", filesystem=system, columns=["package", "state"])
        packages.update(
            package
            for package, state in zip(table["package"].to_pylist(), table["state"].to_pylist())
            if state != "unopened"
        )
    return Findings(found, frozenset(packages))


def _partition(name: str) -> str:
    """The rule whose findings a file has, which its folder says."""
    return next((part[5:] for part in name.split("/") if part.startswith("code=")), "")


def compare(before: Findings, after: Findings) -> Trend:
    """What is new in `after`, and what became of what `before` had."""
    appeared = [after.found[mark] for mark in after.found.keys() - before.found.keys()]
    vanished = [before.found[mark] for mark in before.found.keys() - after.found.keys()]
    return Trend(
        new=_sorted(each for each in appeared if each.package in before.packages),
        first=_sorted(each for each in appeared if each.package not in before.packages),
        gone=_sorted(each for each in vanished if each.package in after.packages),
        kept=len(after.found.keys() & before.found.keys()),
        unread=_sorted(each for each in vanished if each.package not in after.packages),
    )


_LOUDNESS = {"error": 0, "warning": 1, "information": 2, "hint": 3}


def _sorted(found: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(
        sorted(found, key=lambda each: (_LOUDNESS.get(each.severity, 4), each.package, each.path, each.line))
    )
