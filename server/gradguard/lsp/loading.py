"""Settings of files, read from the disk: for every thread but the event loop's, as that never waits for a disk."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from gradguard.check import pyproject
from gradguard.check.parsing import Parsed, Problem
from gradguard.check.patterns import compiled
from gradguard.check.selection import relative
from gradguard.check.settings import ALWAYS_EXCLUDED, Settings, resolve
from gradguard.check.workspace import source_roots
from gradguard.disk.environment import torch_beside
from gradguard.disk.links import Bounds, Projects
from gradguard.disk.reading import Missing, Unreadable
from gradguard.lsp.disk_calls import DiskCalls, Hangs

log = logging.getLogger(__name__)

EMPTY = Parsed({})


@dataclass(frozen=True, slots=True)
class InForce:
    """Settings for one file, with their origins."""

    settings: Settings
    project: pyproject.Project
    editor: Parsed
    folder: str
    """Path of the workspace folder, empty for a file outside all of them."""
    roots: tuple[str, ...] = ()
    """Folders in which the file's absolute imports are looked up."""
    excluded: bool = False
    """Whether the settings leave this file out. A text that is not on disk never is."""
    problems: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    """What is wrong in the files that were looked at for it, by their paths: nothing in most."""

    def origin(self, name: str) -> str:
        """Where the value of an option comes from."""
        if name in self.project.parsed.layer:
            return self.project.path
        if name in self.editor.layer:
            return "editor"
        return "default"


class Loader:
    """Settings as long as nothing changes; each file is read once."""

    def __init__(
        self, folders: Sequence[str], general: Parsed, of_folder: Mapping[str, Parsed], disk: DiskCalls
    ) -> None:
        self._folders = tuple(folders)
        self._general = general
        self._of_folder = dict(of_folder)
        self._disk = disk
        self._lock = threading.Lock()
        self._texts: dict[str, str | None] = {}
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._projects: dict[str, pyproject.Project] = {}
        self._around = Projects(working_folder=False)
        self._shared: dict[tuple[str, str], InForce] = {}
        self._faults: set[str] = set()

    def of(self, path: str, *, folder: bool = False) -> InForce:
        """Settings for the file at a path; a text without a path gets those of the only folder.

        folder: the path is that of a folder, of which only its place in the folder around it counts.

        Never raises: whatever goes wrong is a problem, and what the editor sets, or nothing, is in force.
        """
        with self._lock:
            try:
                return self._of(path, "/" if folder else "")
            except Exception as error:
                return self.without(path, error)

    def without(self, path: str, error: BaseException) -> InForce:
        """What is in force where settings cannot be read for a fault of ours."""
        if repr(error) not in self._faults:
            self._faults.add(repr(error))
            details = "".join(traceback.format_exception(error)).rstrip()
            log.error("the settings for %s cannot be read\n%s", path, details)
        directory = os.path.dirname(path)
        message = f"the settings for its files cannot be read: internal error {type(error).__name__}"
        folder = self._folder_of(path)
        editor = self._of_folder.get(folder, self._general)
        settings = resolve(editor.layer).assuming(torch_beside())
        settings = settings.with_changes(root=folder, exclude=(), per_file_ignores=())
        problems = {directory: (Problem(directory, "", message),)}
        return InForce(settings, pyproject.NO_PROJECT, editor, folder, problems=problems)

    def _folder_of(self, path: str) -> str:
        """The innermost workspace folder that a path lies in; the only one for a path that is nowhere."""
        inside = [
            each for each in self._folders if path == each or path.startswith(each.rstrip(os.sep) + os.sep)
        ]
        if inside:
            return max(inside, key=len)
        return self._folders[0] if len(self._folders) == 1 and not os.path.isabs(path) else ""

    def _of(self, path: str, end: str) -> InForce:
        folder = self._folder_of(path)
        on_disk = os.path.isabs(path)
        directory = os.path.dirname(path) if on_disk else folder
        key = directory, folder
        if key not in self._shared:
            self._shared[key] = self._load(directory, folder)
        shared = self._shared[key]
        if not on_disk:
            return shared
        patterns = compiled((*ALWAYS_EXCLUDED, *shared.settings.exclude))
        return replace(shared, excluded=bool(patterns.verdict(relative(path, shared.settings.root) + end)))

    def _load(self, directory: str, folder: str) -> InForce:
        editor = self._of_folder.get(folder, self._general)
        project = self._project(directory) if directory else pyproject.NO_PROJECT
        root = project.root or folder
        src = editor.layer.get("src", ())
        trusted = tuple(os.path.normpath(os.path.join(root, each)) for each in src if root)
        settings = resolve(editor.layer, project.parsed.layer).assuming(torch_beside())
        settings = settings.with_changes(root=root, trusted=trusted)
        settings = settings.with_changes(within=self._within(directory, project.root))
        roots = self._roots(settings, project) if root else []
        looked = [project.path] if project.path else []
        while directory:
            looked.append(os.path.join(directory, pyproject.NAME))
            above = os.path.dirname(directory)
            if above == directory or looked[-1] == project.path:
                break
            directory = above
        problems = {path: self._problems.get(path, ()) for path in looked}
        return InForce(settings, project, editor, folder, tuple(roots), problems=problems)

    def _project(self, directory: str) -> pyproject.Project:
        below = []
        while directory not in self._projects:
            below.append(directory)
            above = os.path.dirname(directory)
            if above == directory or self._read(os.path.join(directory, pyproject.NAME)) is not None:
                found = self._projects[directory] = pyproject.find(PurePath(directory), self._read)
                if found.parsed.problems:
                    self._problems[found.path] = found.parsed.problems
                break
            directory = above
        found = self._projects[directory]
        self._projects.update(dict.fromkeys(below, found))
        return found

    def _read(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = None
            try:
                self._texts[path] = self._disk.utf8(path)
            except (Missing, Hangs):  # who hangs is told by itself
                pass
            except Unreadable as error:
                self._problems[path] = (Problem(path, "", f"cannot be read: {error}"),)
        return self._texts[path]

    def _within(self, directory: str, root: str) -> tuple[str, ...]:
        """Where what the files of a directory import must lie: in what is open, or belongs to their project."""
        around: tuple[str, ...] = ()
        if directory:
            try:
                around = self._disk.call(directory, lambda: self._around.within(directory, root))
            except Hangs:
                around = (root or directory,)
        return tuple(dict.fromkeys((*self._folders, *around)))

    def _roots(self, settings: Settings, project: pyproject.Project) -> list[str]:
        try:
            roots, left = self._disk.call(settings.root, lambda: _inside(settings))
        except Hangs:
            return list(settings.trusted)
        if left and project.path:
            message = "{} leads out of the project and is not followed unless the editor's settings name it"
            self._problems[project.path] = (
                *project.parsed.problems,
                *(
                    Problem(project.path, "[tool.gradguard] src", message.format(f'"{each}"'))
                    for each in left
                ),
            )
        return roots


def _inside(settings: Settings) -> tuple[list[str], list[str]]:
    return source_roots(settings, settings.root, bounds(settings).holds_folder)


def bounds(settings: Settings) -> Bounds:
    """Where imported files must lie that are not open. It looks at the disk."""
    return Bounds((*settings.within, *settings.trusted) if settings.within else ())
