"""The one settings model: what the editor, the command line and pyproject.toml can set.

Every option is a field of `Settings` that carries its own description, so that the documentation, the
schema of `[tool.gradguard]` and the settings page of VS Code are generated and cannot drift. Options are
written `per-file-ignores` in pyproject.toml and `gradguard.perFileIgnores` in an editor.

Settings come in layers (defaults, editor, pyproject.toml, command line); `resolve` lays them over each
other key by key, the later one wins. The nearest pyproject.toml wins over the editor so that the editor
and continuous integration report the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gradguard.findings import Severity

AUTO = "auto"
"""The torch release that is found."""


class Level(str, Enum):
    """How loud a rule is."""

    OFF = "off"
    HINT = "hint"
    INFORMATION = "information"
    WARNING = "warning"
    ERROR = "error"

    @property
    def severity(self) -> Severity | None:
        """None when the rule is off."""
        return None if self is Level.OFF else Severity(self.value)


class Kind(str, Enum):
    """What an option holds, and so how it is read and described."""

    BOOL = "bool"
    CHOICE = "choice"
    VERSION = "version"
    STRINGS = "strings"
    PATTERNS = "patterns"
    """Strings that are patterns as in .gitignore."""
    RULES = "rules"
    """A list of rule selectors."""
    LEVELS = "levels"
    """A table from rule selector to level."""
    RULES_BY_GLOB = "rules-by-glob"
    """A table from file pattern to rule selectors."""


@dataclass(frozen=True, slots=True)
class Option:
    """The description of one option."""

    key: str
    """As written in pyproject.toml."""
    kind: Kind
    doc: str
    editor_only: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    """Allowed values with what each means."""
    example: str = ""
    """A line or two of TOML."""

    @property
    def editor_key(self) -> str:
        """As written in an editor's settings, without the `gradguard.` before it."""
        head, *rest = self.key.split("-")
        return head + "".join(word.capitalize() for word in rest)


def _option(default: Any, key: str, kind: Kind, doc: str, **more: Any) -> Any:
    return field(default=default, metadata={"option": Option(key, kind, doc, **more)})


LEVELS = (
    ("off", "say nothing"),
    ("hint", "a faint mark, in the editor only"),
    ("information", "shown, never fails a run"),
    ("warning", "shown, a run exits with 1"),
    ("error", "shown in red, a run exits with 1"),
)

ALWAYS_EXCLUDED = (
    ".git/", ".hg/", ".svn/", ".venv/", "venv/", ".tox/", ".nox/", ".eggs/", "*.egg-info/", "__pycache__/",
    "__pypackages__/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".gradguard_cache/", ".ipynb_checkpoints/",
    "node_modules/", "site-packages/", "buck-out/", "_build/",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings in force for one file or run. Rules are held by code, sorted."""

    levels: tuple[tuple[str, Level], ...] = _option(
        (),
        "rules",
        Kind.LEVELS,
        "Level for each rule, by code, name or prefix of a code. Without one, a rule chooses by how sure it is: "
        "error when certain that torch raises, else warning or information.",
        choices=LEVELS,
        example='[tool.gradguard.rules]\nitem-in-loop = "off"\nGG2 = "warning"',
    )
    select: tuple[str, ...] = _option(
        (),
        "select",
        Kind.RULES,
        "Report only these rules (codes, names, prefixes of codes, `ALL`). Empty: every rule that is on by default.",
        example='select = ["GG1", "accumulate-with-graph"]',
    )
    ignore: tuple[str, ...] = _option(
        (),
        "ignore",
        Kind.RULES,
        "Never report these rules (codes, names, prefixes of codes). Wins over `select` and `rules`.",
        example='ignore = ["GG301"]',
    )
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = _option(
        (),
        "per-file-ignores",
        Kind.RULES_BY_GLOB,
        "Rules that are not reported in files matching a pattern (as in .gitignore).",
        example='[tool.gradguard.per-file-ignores]\n"tests/**" = ["GG3"]',
    )
    exclude: tuple[str, ...] = _option(
        (),
        "exclude",
        Kind.PATTERNS,
        "Files and folders that are not read, as patterns of .gitignore, besides the usual ones (`.git`, `.venv`, "
        "`node_modules`, ...). A leading `!` takes a file back in.",
        example='exclude = ["third_party/", "*_pb2.py"]',
    )
    respect_gitignore: bool = _option(
        True, "respect-gitignore", Kind.BOOL, "Also leave out what .gitignore files leave out."
    )
    src: tuple[str, ...] = _option(
        (".", "src"),
        "src",
        Kind.STRINGS,
        "Folders, relative to pyproject.toml, in which the project's own modules are looked up. One that leads out of "
        "the project is followed only where a user names it: with `--src`, or in the settings of the editor.",
        example='src = ["python"]',
    )
    torch: str = _option(
        AUTO,
        "torch-version",
        Kind.VERSION,
        "The torch release whose behaviour is assumed, such as `2.6`. `auto`: the one installed beside the Python that "
        "gradguard runs in or in the active environment, else the newest one known.",
        example='torch-version = "2.6"',
    )
    all: bool = _option(
        False,
        "all",
        Kind.BOOL,
        "Also report what is only possible, because it depends on calls that cannot be looked into.",
    )
    enable: bool = _option(True, "enable", Kind.BOOL, "Report findings in the editor.", editor_only=True)
    run: str = _option(
        "onType",
        "run",
        Kind.CHOICE,
        "When the editor checks a file.",
        editor_only=True,
        choices=(("onType", "while typing"), ("onSave", "when the file is opened or saved")),
    )
    scope: str = _option(
        "open",
        "scope",
        Kind.CHOICE,
        "Which files the editor checks.",
        editor_only=True,
        choices=(("open", "open files"), ("workspace", "every file of the workspace that uses torch")),
    )
    inlay_hints: bool = _option(
        False,
        "inlay-hints",
        Kind.BOOL,
        'Show in the text what autograd keeps: "saved by exp", "view of x", "graph kept".',
        editor_only=True,
    )
    code_lens: bool = _option(
        False,
        "code-lens",
        Kind.BOOL,
        "Show above each `backward()` how many tensors stay saved for it.",
        editor_only=True,
    )
    hover: bool = _option(
        True,
        "hover",
        Kind.BOOL,
        "Show on hover what a torch operation saves and what may be written.",
        editor_only=True,
    )
    observed: bool = _option(
        True,
        "observed",
        Kind.BOOL,
        "Show what `gradguard run` saw, beside the findings of the text.",
        editor_only=True,
    )

    root: str = ""
    """Absolute folder that patterns are relative to; this and what follows is set by whoever found the settings."""
    within: tuple[str, ...] = ()
    """Absolute folders in which imported files must lie, such as that of the project; empty for everywhere."""
    trusted: tuple[str, ...] = ()
    """Absolute folders in which modules are looked up besides, wherever they lie, as the user named them himself."""

    def level(self, code: str) -> Level | None:
        """The level set for a rule, None where the rule decides itself."""
        for key, level in self.levels:
            if key == code:
                return level
        return None

    @property
    def release(self) -> str | None:
        """The torch release that is set or was found, None for the newest known."""
        return None if self.torch == AUTO else self.torch

    def assuming(self, installed: str) -> Settings:
        """With the torch that is installed (a release, or empty) where the settings leave it open."""
        return self.with_changes(torch=installed) if self.torch == AUTO and installed else self

    def with_changes(self, **changes: Any) -> Settings:
        """A copy with other values for these fields."""
        return dataclasses.replace(self, **changes)


DEFAULTS = Settings()


def options() -> dict[str, Option]:
    """Every option by the name of its field, in the order of the documentation."""
    return {
        each.name: each.metadata["option"]
        for each in dataclasses.fields(Settings)
        if "option" in each.metadata
    }


def default_of(name: str) -> Any:
    """The default of a field."""
    return getattr(DEFAULTS, name)


Layer = Mapping[str, Any]
"""Values by field name; fields that were not set are absent."""


def resolve(*layers: Layer) -> Settings:
    """Lay layers over the defaults, the last one on top."""
    values: dict[str, Any] = {}
    for layer in layers:
        values.update(layer)
    return Settings(**values)
