"""What was used of late, as much as may be kept."""

from __future__ import annotations

from collections import OrderedDict


class Recent:
    """Names in the order of their use, with their sizes, which together stay below a bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._sum = 0

    def use(self, name: str, size: int) -> list[str]:
        """A name is used; those that are too many now, the longest unused first, but never this one."""
        self.drop(name)
        self._sizes[name] = size
        self._sum += size
        gone = []
        while self._sum > self._most and len(self._sizes) > 1:
            gone.append(next(iter(self._sizes)))
            self.drop(gone[-1])
        return gone

    def drop(self, name: str) -> None:
        """A name is used no longer."""
        self._sum -= self._sizes.pop(name, 0)
