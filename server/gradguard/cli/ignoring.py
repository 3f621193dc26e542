"""What .gitignore files leave out: each is read once, up to a size, and is kept while its folder is walked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from gradguard.check.patterns import Patterns
from gradguard.disk.links import Bounds
from gradguard.disk.reading import SETTINGS_BYTES, Missing, Unreadable, read_bytes

NAME = ".gitignore"
DEEPEST = 100
"""Files that have a say at once, each in a folder of the one before: every name is looked for in all of them."""


@dataclass(frozen=True, slots=True)
class Ignoring:
    """The .gitignore file of a folder, and those of the folders above it."""

    folder: str
    patterns: Patterns
    outer: Ignoring | None
    count: int
    size: int

    @classmethod
    def of(
        cls, folder: str, outer: Ignoring | None, bounds: Bounds, tell: Callable[[str, str], object]
    ) -> Ignoring | None:
        """What has a say in a folder; `tell` takes the path of a file that cannot be read, and why."""
        path = os.path.join(folder, NAME)
        try:
            data = read_bytes(path, SETTINGS_BYTES)
            if not bounds.holds(path):
                raise Unreadable("a link that leads out of the project")
            count, size = (outer.count + 1, outer.size + len(data)) if outer else (1, len(data))
            if count > DEEPEST or size > SETTINGS_BYTES:
                raise Unreadable("there are too many of them in the folders above")
        except Missing:
            if os.path.islink(path):
                tell(path, "a link that leads nowhere")
            return outer
        except Unreadable as error:
            tell(path, str(error))
            return outer
        patterns = Patterns(data.decode("utf-8", "replace").splitlines())
        for text in patterns.too_much[:1]:
            tell(path, f'read without "{text[:40]}...": {patterns.refused[text]}')
        return cls(folder, patterns, outer, count, size) if patterns else outer

    def leaves_out(self, path: str, is_folder: bool) -> bool:
        """Whether a path is left out: the innermost file that says something about it decides."""
        each: Ignoring | None = self
        while each is not None:
            verdict = each.patterns.verdict(_below(path, each.folder) + "/" * is_folder)
            if verdict is not None:
                return verdict
            each = each.outer
        return False


def above(top: str, of: Callable[[str, Ignoring | None], Ignoring | None]) -> Ignoring | None:
    """What has a say from above in a folder that was asked for: nothing where it is itself left out."""
    folders = [top]
    while not os.path.exists(os.path.join(folders[-1], ".git")):
        folder = os.path.dirname(folders[-1])
        if folder == folders[-1]:
            return None
        folders.append(folder)
    ignoring: Ignoring | None = None
    for folder, inner in zip(reversed(folders), reversed(folders[:-1])):
        ignoring = of(folder, ignoring)
        if ignoring is not None and ignoring.leaves_out(inner, True):
            return None
    return ignoring


def _below(path: str, folder: str) -> str:
    name = path[len(folder.rstrip(os.sep)) + 1 :]
    return name if os.sep == "/" else name.replace(os.sep, "/")
