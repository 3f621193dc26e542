"""Which settings are in force where: the nearest pyproject.toml, with the command line on top."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gradguard.check import pyproject
from gradguard.check.parsing import Parsed, Problem, parse
from gradguard.check.settings import Layer, Settings, resolve


@dataclass(slots=True)
class Configuration:
    """Settings by folder, each pyproject.toml read once. `problems` grows as folders are asked for."""

    command_line: Layer = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _folders: dict[Path, Settings] = field(default_factory=dict)
    _texts: dict[str, str | None] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def of(self, folder: Path) -> Settings:
        """Settings for the files of a folder (absolute)."""
        if folder not in self._folders:
            parent = folder.parent
            if parent != folder and self._text(str(folder / pyproject.NAME)) is None:
                self._folders[folder] = self.of(parent)
            else:
                self._folders[folder] = self._load(folder)
        return self._folders[folder]

    def _load(self, folder: Path) -> Settings:
        project = pyproject.find(folder, self._text)
        if project.path not in self._seen:
            self._seen.add(project.path)
            self.problems.extend(project.parsed.problems)
        return resolve(project.parsed.layer, self.command_line).with_changes(root=project.root)

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            try:
                self._texts[path] = Path(path).read_text("utf-8")
            except UnicodeDecodeError as error:
                self._texts[path] = None
                self.problems.append(Problem(path, "", f"not UTF-8: {error.reason} at byte {error.start}"))
            except OSError:
                self._texts[path] = None
        return self._texts[path]


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
