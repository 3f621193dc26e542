"""Versions of packages: that of torch is known, and programs compare it to choose how they do things."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RELEASE = re.compile(r"v?(\d{1,18}(?:\.\d{1,18}){0,9})(?:\+.*)?")


@dataclass(frozen=True, slots=True, order=True)
class VersionV:
    """A version as `packaging.version.parse` makes it; compares as a release does."""

    release: tuple[int, ...]
    """Without zeros at the end: 2.0 is 2.0.0."""

    def part(self, index: int) -> int:
        """`major`, `minor` or `micro`."""
        return self.release[index] if index < len(self.release) else 0


def parsed(text: str) -> VersionV | None:
    """The version of a text; None for one that is no release, as `2.4.0a0`."""
    found = _RELEASE.fullmatch(text.strip())
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return VersionV(tuple(numbers))


class VersionText(str):
    """`torch.__version__`: a text that compares as a version does, with texts that are one."""

    __slots__ = ()

    def _order(self, other: object) -> int | None:
        mine = parsed(self)
        theirs = parsed(other) if isinstance(other, str) else other
        if mine is None or not isinstance(theirs, VersionV):
            return None
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: object) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order < 0

    def __le__(self, other: object) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order <= 0

    def __gt__(self, other: object) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order > 0

    def __ge__(self, other: object) -> bool:
        order = self._order(other)
        return NotImplemented if order is None else order >= 0

    def __eq__(self, other: object) -> bool:
        order = self._order(other)
        return str.__eq__(self, other) if order is None else order == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def of_torch(described: str) -> VersionText:
    """The text of the version whose operations are described, such as 2.13."""
    return VersionText(f"{described}.0" if described.count(".") == 1 else described)
