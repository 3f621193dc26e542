"""Which settings are in force where: the nearest pyproject.toml, with the command line on top."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from gradguard.check import pyproject
from gradguard.check.parsing import Parsed, Problem, parse
from gradguard.check.settings import AUTO, Layer, Settings, resolve
from gradguard.check.workspace import source_roots
from gradguard.cli.result import Trouble, Unread
from gradguard.disk.environment import torch_beside
from gradguard.disk.links import Bounds, Projects
from gradguard.disk.reading import SETTINGS_BYTES, Missing, Unreadable, read_bytes


@dataclass(slots=True)
class Configuration:
    """Settings by folder, each pyproject.toml read once. What was wrong grows as folders are asked for."""

    command_line: Layer = field(default_factory=dict)
    trusted: tuple[str, ...] = ()
    """Folders (absolute) in which the command line has modules looked up."""
    problems: list[Problem] = field(default_factory=list)
    """What is wrong in settings."""
    troubles: list[Trouble] = field(default_factory=list)
    """Files with settings that cannot be read."""
    notes: dict[str, None] = field(default_factory=dict)
    """What settings ask for and is not done."""
    _files: dict[str, Settings] = field(default_factory=dict)
    _folders: dict[str, Settings] = field(default_factory=dict)
    _projects: Projects = field(default_factory=Projects)
    _noted: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def of(self, folder: Path) -> Settings:
        """Settings for the files of a folder (absolute)."""
        path = str(folder)
        if path not in self._folders:
            settings = self._of_file(path)
            within = self._projects.within(path, settings.root)
            self._folders[path] = settings = settings.with_changes(within=within)
            self._note(settings)
        return self._folders[path]

    def _of_file(self, folder: str) -> Settings:
        """What the nearest file says, or what is in force without any."""
        below = []
        while folder not in self._files:
            below.append(folder)
            parsed = self._read(os.path.join(folder, pyproject.NAME))
            outer = os.path.dirname(folder)
            if parsed is None and outer != folder:
                folder = outer
                continue
            settings = resolve(parsed.layer if parsed else {}, self.command_line).assuming(torch_beside())
            root = folder if parsed else ""
            self._files[folder] = settings.with_changes(root=root, trusted=self.trusted)
            self.problems.extend(parsed.problems if parsed else ())
        settings = self._files[folder]
        self._files.update(dict.fromkeys(below, settings))
        return settings

    def _read(self, path: str) -> Parsed | None:
        """What a file says; None where there is none that speaks of gradguard."""
        try:
            text = read_bytes(path, SETTINGS_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return Parsed({}, (Problem(path, "", f"not UTF-8: {error.reason} at byte {error.start}"),))
        except Unreadable as error:
            if not isinstance(error, Missing) or os.path.islink(path):
                why = f"{error}; its settings are not in force"
                self.troubles.append(Trouble(path, why, unread=Unread.FILE, named=False))
            return None
        return pyproject.parse_text(text, path)

    def _note(self, settings: Settings) -> None:
        """Tell once which folders of `src` are left out."""
        key = settings.root, settings.within
        if key in self._noted:
            return
        self._noted.add(key)
        bounds = Bounds((*settings.within, *settings.trusted))
        base = settings.root or os.getcwd()
        if bounds.holds_folder(base):
            for text in source_roots(settings, base, bounds.holds_folder)[1]:
                where = f"{os.path.join(settings.root, pyproject.NAME)}: " if settings.root else ""
                name = os.path.relpath(os.path.join(base, text))
                self.notes[
                    f'{where}src: "{text}" leads out of the project and is not followed, but for --src {name}'
                ] = None


def assumed(wanted: str | None) -> str | None:
    """The torch release that `--torch` asks for, or the one installed; None for the newest known."""
    return Settings(torch=wanted or AUTO).assuming(torch_beside()).release


def command_line_layer(
    *, select: list[str] | None, ignore: list[str] | None, torch: str | None, everything: bool
) -> Parsed:
    """The options of the command line as a layer; problems name the option."""
    data: dict[str, object] = {}
    if select:
        data["select"] = _split(select)
    if ignore:
        data["ignore"] = _split(ignore)
    if torch is not None:
        data["torch-version"] = torch
    if everything:
        data["all"] = True
    parsed = parse(data, "command line")
    names = {"torch-version": "--torch"}
    problems = tuple(
        Problem("", names.get(each.key, f"--{each.key}"), each.message, 0) for each in parsed.problems
    )
    return Parsed(parsed.layer, problems)


def _split(values: list[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]
