"""What is asked of the answers to many random programs: shares of them that may be no larger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """At most `most` of `whole` may be `part`: of 811 programs that raise, 0.5 % may be missed."""

    what: str
    part: int
    whole: int
    most: float = 0.0

    @property
    def met(self) -> bool:
        """Whether it is as small as asked."""
        return self.part <= self.most * self.whole

    def __str__(self) -> str:
        return f"{self.what}: {self.part} of {self.whole} ({percent(self.part, self.whole)}), at most {100 * self.most:g} % asked"


def percent(part: int, whole: int) -> str:
    """A share with two digits, `-` of nothing."""
    return f"{100 * part / whole:.2f} %" if whole else "-"


def missed(shares: Iterable[Share]) -> list[Share]:
    """Those that are larger than asked."""
    return [share for share in shares if not share.met]
