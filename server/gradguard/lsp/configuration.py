"""Which settings are in force for a file, as far as that is known, and what is wrong in any of them.

The editor's settings of the file's workspace folder lie below the nearest pyproject.toml, so that editor and
command line report the same. Folders may be nested: the innermost one counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradguard.check.parsing import Parsed, Problem, parse
from gradguard.check.settings import Settings, options, resolve
from gradguard.lsp.disk_calls import DiskCalls
from gradguard.lsp.loading import EMPTY, InForce, Loader

log = logging.getLogger(__name__)

OF_THE_CLIENT = frozenset(
    (
        "interpreter", "importStrategy", "path", "args", "cwd", "logLevel", "logFile", "trace", "showNotifications",
        "server", "client", "workspace", "workspaceFolder", "language", "settings", "globalSettings", "gradguard",
        "diagnostics", "status",
    )
)  # fmt: skip
"""Keys that editors keep in the same section and act on themselves, and those that wrap the section."""

SECTION = "gradguard"
"""Under which editors keep these settings."""

Wrong = Callable[[str, Sequence[Problem]], object]
"""Told what is wrong in a file or in the editor's settings, whenever that is something else than before."""


class Configuration:
    """Editor settings by folder, and what is known of the pyproject.toml files that lay over them."""

    def __init__(self, disk: DiskCalls, wrong: Wrong = lambda where, problems: None) -> None:
        self._disk = disk
        self._wrong = wrong
        self._folders: tuple[str, ...] = ()
        self._general = EMPTY
        self._of_folder: dict[str, Parsed] = {}
        self._known: dict[str, InForce] = {}
        self.loader = self.new_loader()
        """For other threads; another one as soon as any setting may have changed."""
        self.problems: dict[str, tuple[Problem, ...]] = {}
        """What was wrong when settings were last read, by where."""

    @property
    def folders(self) -> Sequence[str]:
        """Paths of the workspace folders."""
        return self._folders

    @folders.setter
    def folders(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self.forget()

    @property
    def general(self) -> Settings:
        """What the editor sets for no folder in particular."""
        return resolve(self._general.layer)

    def forget(self) -> None:
        """Read pyproject.toml files again when they are next needed."""
        self._known.clear()
        self.loader = self.new_loader()

    def editor(self, data: Any, folder: str | None = None) -> bool:
        """Take the editor's settings, for one folder or in general. Whether anything changed."""
        where = "editor settings" + (f" of {folder}" if folder else "")
        parsed = _parsed(data, where)
        before = self._general if folder is None else self._of_folder.get(folder, EMPTY)
        if parsed == before:
            return False
        if folder is None:
            self._general = parsed
        else:
            self._of_folder[folder] = parsed
        self.forget()
        self._note(where, parsed.problems)
        return True

    def known(self, path: str) -> InForce | None:
        """Settings for the file at a path, None where they are still to be loaded."""
        return self._known.get(path)

    def take(self, loader: Loader, path: str, force: InForce) -> None:
        """What a loader gave, unless settings changed since."""
        if loader is self.loader:
            self._known[path] = force
            self.heed(loader, force.problems)

    def heed(self, loader: Loader, problems: Mapping[str, tuple[Problem, ...]]) -> None:
        """What a loader found wrong, unless settings changed since; nothing for a file that is right."""
        if loader is self.loader:
            for where, found in problems.items():
                self._note(where, found)

    def _note(self, where: str, problems: tuple[Problem, ...]) -> None:
        if problems == self.problems.get(where, ()):
            return
        if problems:
            self.problems[where] = problems
        else:
            del self.problems[where]
        self._wrong(where, problems)

    def new_loader(self) -> Loader:
        """One that has read nothing."""
        return Loader(self._folders, self._general, self._of_folder, self._disk)


def _parsed(data: Any, where: str) -> Parsed:
    table = {key: value for key, value in section(data).items() if key not in OF_THE_CLIENT}
    try:
        return parse(table, where, editor=True)
    except Exception as error:
        log.exception("the %s cannot be read", where)
        return Parsed(
            {}, (Problem(where, SECTION, f"cannot be read: internal error {type(error).__name__}"),)
        )


def section(data: Any) -> Mapping[str, Any]:
    """The table of gradguard's settings in what an editor sent, wrapped in its section's name or not."""
    if not isinstance(data, Mapping):
        return {}
    inner = data.get(SECTION)
    return inner if isinstance(inner, Mapping) else data


def describe(force: InForce) -> list[tuple[str, str, str]]:
    """Each option with its value and origin, for people."""
    rows = []
    for name, option in options().items():
        value = getattr(force.settings, name)
        rows.append((option.editor_key, str(getattr(value, "value", value)), force.origin(name)))
    return rows
