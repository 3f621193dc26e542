"""Which settings are in force for a file, and where each came from.

The editor's settings of the file's workspace folder lie below the nearest pyproject.toml, so that editor and
command line report the same. Folders may be nested: the innermost one counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from gradguard.check import pyproject
from gradguard.check.parsing import Parsed, Problem, parse
from gradguard.check.patterns import compiled
from gradguard.check.selection import relative
from gradguard.check.settings import ALWAYS_EXCLUDED, Settings, options, resolve
from gradguard.lsp.files import read_text

OF_THE_CLIENT = frozenset(
    (
        "interpreter", "importStrategy", "path", "args", "cwd", "logLevel", "logFile", "trace", "showNotifications",
        "server", "client", "workspace", "workspaceFolder", "language", "settings", "globalSettings", "gradguard",
    )
)  # fmt: skip
"""Keys that editors keep in the same section and act on themselves, and those that wrap the section."""

EMPTY = Parsed({})


@dataclass(frozen=True, slots=True)
class InForce:
    """Settings for the files of one directory, with their origins."""

    settings: Settings
    project: pyproject.Project
    editor: Parsed
    folder: str
    """Path of the workspace folder, empty for a file outside all of them."""

    def origin(self, name: str) -> str:
        """Where the value of an option comes from."""
        if name in self.project.parsed.layer:
            return self.project.path
        if name in self.editor.layer:
            return "editor"
        return "default"


@dataclass(slots=True)
class Configuration:
    """Editor settings by folder, and what pyproject.toml files lay over them."""

    folders: list[str] = field(default_factory=list)
    """Paths of the workspace folders."""
    problems: dict[str, Problem] = field(default_factory=dict)
    """What was wrong in any settings, until they are read again."""
    _general: Parsed = EMPTY
    _of_folder: dict[str, Parsed] = field(default_factory=dict)
    _cache: dict[str, InForce] = field(default_factory=dict)

    @property
    def general(self) -> Settings:
        """What the editor sets for no folder in particular."""
        return resolve(self._general.layer)

    def forget(self) -> None:
        """Read pyproject.toml files again when they are next needed."""
        self._cache.clear()
        self.problems = {
            key: problem for key, problem in self.problems.items() if problem.where.startswith("editor")
        }

    def editor(self, data: Any, folder: str | None = None) -> bool:
        """Take the editor's settings, for one folder or in general. Whether anything changed."""
        where = "editor settings" + (f" of {folder}" if folder else "")
        table = {key: value for key, value in section(data).items() if key not in OF_THE_CLIENT}
        parsed = parse(table, where, editor=True)
        before = self._general if folder is None else self._of_folder.get(folder, EMPTY)
        if parsed == before:
            return False
        if folder is None:
            self._general = parsed
        else:
            self._of_folder[folder] = parsed
        self.problems = {key: p for key, p in self.problems.items() if p.where != where}
        for problem in parsed.problems:
            self.problems[str(problem)] = problem
        self._cache.clear()
        return True

    def folder_of(self, path: str) -> str:
        """The innermost workspace folder that a path lies in; the only one for a path that is nowhere."""
        inside = [
            each for each in self.folders if path == each or path.startswith(each.rstrip(os.sep) + os.sep)
        ]
        if inside:
            return max(inside, key=len)
        return self.folders[0] if len(self.folders) == 1 and not os.path.isabs(path) else ""

    def of(self, path: str) -> InForce:
        """Settings for the file at a path; a text without a path gets those of the only folder."""
        folder = self.folder_of(path)
        directory = os.path.dirname(path) if os.path.isabs(path) else folder
        key = f"{directory}\0{folder}"
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._load(directory, folder)
        return found

    def excluded(self, path: str) -> bool:
        """Whether the settings leave this file out. A text that is not on disk never is."""
        if not os.path.isabs(path):
            return False
        force = self.of(path)
        root = force.settings.root or force.folder
        patterns = (*ALWAYS_EXCLUDED, *force.settings.exclude)
        return bool(compiled(patterns).verdict(relative(path, root)))

    def _load(self, directory: str, folder: str) -> InForce:
        editor = self._of_folder.get(folder, self._general)
        project = pyproject.find(PurePath(directory), read_text) if directory else pyproject.NO_PROJECT
        for problem in project.parsed.problems:
            self.problems[str(problem)] = problem
        settings = resolve(editor.layer, project.parsed.layer).with_changes(root=project.root or folder)
        return InForce(settings, project, editor, folder)


def section(data: Any) -> Mapping[str, Any]:
    """The table of gradguard's settings in what an editor sent, wrapped in its section's name or not."""
    if not isinstance(data, Mapping):
        return {}
    inner = data.get("gradguard")
    return inner if isinstance(inner, Mapping) else data


def source_roots(force: InForce) -> list[str]:
    """Folders in which a file's absolute imports are looked up."""
    base = force.settings.root or force.folder
    return [str(Path(base, each)) for each in force.settings.src] if base else []


def describe(force: InForce) -> list[tuple[str, str, str]]:
    """Each option with its value and origin, for people."""
    rows = []
    for name, option in options().items():
        value = getattr(force.settings, name)
        rows.append((option.editor_key, str(getattr(value, "value", value)), force.origin(name)))
    return rows
