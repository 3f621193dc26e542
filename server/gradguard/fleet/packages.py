"""A source taken apart into packages, each with its settings and the digest that its result is kept under.

A folder with a `pyproject.toml`, `setup.py` or `setup.cfg` is the root of a package; what lies in none belongs to the
source itself. Settings are those of the nearest `pyproject.toml` with a `[tool.gradguard]` table, in the source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gradguard.check import pyproject
from gradguard.check.settings import Settings, resolve
from gradguard.cli import discover
from gradguard.fleet.frames import packed, unpacked
from gradguard.fleet.model import Options, Tree, Unread, plain_unread
from gradguard.fleet.names import ROOTS

TOP = "/"
"""The folder in which the files of a package stand for the analysis. There is none on the disk."""


@dataclass(frozen=True, slots=True)
class Package:
    """Files with one root, read together."""

    root: str
    """From the top of the source; empty for the top itself."""
    inside: str
    """The path of the root from the folder that its settings are relative to, as patterns in them are."""
    settings: tuple[str, str]
    """The `pyproject.toml` in force, by its path in the source and its text; empty without one."""
    files: dict[str, bytes]
    """Programs, by their paths from the root."""
    checked: tuple[str, ...]
    """Those that are checked; the others are read where one of these imports them."""
    unread: tuple[Unread, ...] = ()

    def packed(self) -> bytes:
        """All of it as a message."""
        names = list(self.files)
        head = {
            "root": self.root,
            "inside": self.inside,
            "settings": list(self.settings),
            "names": names,
            "checked": list(self.checked),
            "unread": plain_unread(self.unread),
        }
        return packed(head, [self.files[name] for name in names])

    @classmethod
    def of(cls, message: bytes) -> Package:
        """What `packed` gave. Raises Broken."""
        head, parts = unpacked(message)
        path, text = head["settings"]
        unread = tuple(Unread(where, why) for where, why in head["unread"])
        files = dict(zip(head["names"], parts))
        return cls(head["root"], head["inside"], (path, text), files, tuple(head["checked"]), unread)

    def path(self, name: str) -> str:
        """Where a file stands for the analysis."""
        return TOP + "/".join(part for part in (self.inside, name) if part)

    def name(self, path: str) -> str:
        """The path from the root of a file that stands there."""
        return path[len(self.path("")) + bool(self.inside) :]

    def key(self, version: str, given: Options) -> str:
        """What its result depends on, in one digest."""
        hashed = hashlib.blake2b(digest_size=20)
        head = [version, given.plain(), self.inside, self.settings[1], sorted(self.checked)]
        hashed.update(json.dumps(head).encode())
        for name in sorted(self.files):
            data = self.files[name]
            hashed.update(f"\0{len(data)} ".encode() + name.encode("utf-8", "surrogateescape") + b"\0")
            hashed.update(data)
        return hashed.hexdigest()


def packages(tree: Tree, given: Options) -> Iterator[Package]:
    """The packages of a source, by their roots."""
    roots = {"", tree.base} | {_folder(name) for name in tree.files if name.rpartition("/")[2] in ROOTS}
    files: dict[str, dict[str, bytes]] = {}
    for name, data in tree.files.items():
        if name.endswith(".py"):
            root = _root_of(name, roots)
            files.setdefault(root, {})[name[len(root) + 1 if root else 0 :]] = data
    for root in sorted(files):
        text, unread = _settings_text(tree, root)
        own, problems = settings_of(text, root, given)
        place = _place(text[0], root)
        checked = tuple(
            name for name in sorted(files[root]) if not discover.excluded(Path(TOP, place, name), own)
        )
        if checked:
            yield Package(root, place, text, files[root], checked, (*unread, *problems))


def settings_of(text: tuple[str, str], root: str, given: Options) -> tuple[Settings, tuple[Unread, ...]]:
    """The settings of a package under `TOP`, and what is wrong with them."""
    path, content = text
    parsed = pyproject.parse_text(content, path) if path else None
    settings = resolve(parsed.layer if parsed else {}, given.parsed().layer)
    problems = tuple(Unread(path, str(each)) for each in parsed.problems) if parsed else ()
    # The folder of the settings stands at the top, and the package where it lies below that.
    return settings.with_changes(root=TOP, within=(TOP,)), problems


def _settings_text(tree: Tree, root: str) -> tuple[tuple[str, str], list[Unread]]:
    unread: list[Unread] = []

    def read(path: str) -> str | None:
        name = path.lstrip("/")
        data = tree.files.get(name)
        if data is None:
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            unread.append(Unread(name, f"not UTF-8: {error.reason} at byte {error.start}"))
            return None

    project = pyproject.find(PurePosixPath(TOP, root), read)
    path = project.path.lstrip("/")
    return (path, read(project.path) or "") if path else ("", ""), unread


def _place(settings_path: str, root: str) -> str:
    """The path of a root from the folder of its settings."""
    folder = _folder(settings_path)
    if not settings_path:
        return ""
    return root[len(folder) :].lstrip("/") if folder else root


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _root_of(name: str, roots: set[str]) -> str:
    folder = _folder(name)
    while folder not in roots:
        folder = _folder(folder)
    return folder
