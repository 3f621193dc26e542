"""Files that import what is checked: a mistake of two files often shows only from the other one.

    lib.py    def scale(x): y = x.sigmoid(); y += 1; return y      nothing wrong by itself
    use.py    scale(w).sum().backward()                            needs what `lib.py` wrote

Whoever checks `lib.py` alone is told of it as well: `use.py` is read, and what it shows of `lib.py` is reported.

The workspace's files are looked through for imports, of which the cache keeps a list for each folder; only those that
an import really leads from are checked, the nearest first. Both have bounds, and what was left out is said.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradguard.check.api import GATE
from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.cli import discover
from gradguard.cli.cache import Cache, digest
from gradguard.disk.links import Bounds
from gradguard.disk.reading import Unreadable, read_bytes

FILES = 5_000
"""Of a workspace that are looked through for imports."""
NEAREST = 50
"""Files that are checked because they import what was asked for."""
FAR = 8
"""Imports in a row through which one file may reach another."""

_STATEMENT = re.compile(
    r'^[ \t"]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\n;#"\\]*)|import[ \t]+([^\n;#"\\]+))',
    re.MULTILINE,
)
"""Also in the JSON of a notebook, where a line begins with a quote. A string that looks like one does no harm."""

Import = tuple[int, str]
"""The level and the dotted name of what may be a module: `from ..a import b` may import `a` and `a.b`, both at level 2."""


@dataclass(frozen=True, slots=True)
class Imports:
    """What a file imports, and whether it could show something."""

    names: tuple[Import, ...] = ()
    torch: bool = False
    backward: bool = False
    """Whether a backward is started in it, as far as a glance shows: those files show most."""


@dataclass(slots=True)
class Found:
    """Files to be checked besides what was asked for, the nearest first."""

    paths: list[str] = field(default_factory=list)
    more: int = 0
    """How many further ones there are."""
    cut: bool = False
    """Whether not all files of the workspace were looked at."""


def callers(
    asked: Iterable[str],
    known: Iterable[str],
    folders: Iterable[str],
    settings_of: Callable[[Path], Settings],
    workspace_of: Callable[[Settings], Workspace],
    cache: Cache | None,
) -> Found:
    """The files that import one of those asked for, be it through others.

    known: files that were found already. folders: those whose files are looked through besides.
    """
    found = Found()
    targets = dict.fromkeys(asked)
    paths = dict.fromkeys(known)
    for folder in folders:
        walked = discover.walked(folder, settings_of)
        paths.update(dict.fromkeys(itertools.islice(walked, max(0, FILES - len(paths)))))
        found.cut = found.cut or next(walked, None) is not None
    index = _imports_of([*targets, *(path for path in paths if path not in targets)], cache)
    naming: dict[str, list[str]] = {}
    for path, imports in index.items():
        for name in dict.fromkeys(_last(each, path) for each in imports.names):
            naming.setdefault(name, []).append(path)

    def leads(importer: str, to: str) -> bool:
        workspace = workspace_of(settings_of(Path(importer).parent))
        return any(
            workspace.resolve(name, level, importer) == to
            for level, name in index[importer].names
            if _last((level, name), importer) == _called(to)
        )

    reached = dict.fromkeys(targets, 0)
    front = list(targets)
    for distance in range(1, FAR + 1):
        nearer, front = front, []
        for to in nearer:
            for importer in naming.get(_called(to), ()):
                if importer not in reached and leads(importer, to):
                    reached[importer] = distance
                    front.append(importer)
    order = sorted(
        (path for path, distance in reached.items() if distance and index[path].torch),
        key=lambda path: (reached[path], not index[path].backward, path),
    )
    found.paths, found.more = order[:NEAREST], max(0, len(order) - NEAREST)
    return found


def outside(folders: Iterable[str], covered: Sequence[str]) -> list[str]:
    """Those of some folders that lie in none of the covered ones, nor in another of them."""
    kept: list[str] = []
    for folder in sorted(set(folders), key=len):
        taken = [*covered, *kept]
        if not taken or not Bounds(taken).holds_folder(folder):
            kept.append(folder)
    return kept


def imports_in(data: bytes) -> Imports:
    """What the text of a file imports, as a glance at its lines shows."""
    text = data.decode("utf-8", "replace").replace("\\\n", " ")
    names: dict[Import, None] = {}
    for dots, module, taken, plain in _STATEMENT.findall(text):
        if plain:
            for each in _words(plain):
                names.update(
                    dict.fromkeys((0, part) for part in itertools.accumulate(each.split("."), _joined))
                )
            continue
        level = len(dots)
        names[level, module] = None
        names.update(dict.fromkeys((level, _joined(module, each)) for each in _words(taken)))
    return Imports(tuple(names), GATE in text, ".backward(" in text or "autograd.grad(" in text)


def _words(text: str) -> Iterator[str]:
    """The names of an import's list: `(a, b as c)` has a and b."""
    for part in re.sub(r"#[^\n]*|[()\"\\]", " ", text).split(","):
        word = part.split()[:1]
        if word and word[0] != "*":
            yield word[0]


def _joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name


def _last(imported: Import, importer: str) -> str:
    """The name of the file or folder that an import leads to."""
    level, name = imported
    if name:
        return name.rpartition(".")[2]
    folder = os.path.dirname(importer)
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    return os.path.basename(folder)


def _called(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__init__.py" else os.path.splitext(name)[0]


def _imports_of(paths: Sequence[str], cache: Cache | None) -> dict[str, Imports]:
    """What each file imports. What the cache has of a folder counts for files that did not change since."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        folders.setdefault(folder, []).append(name)
    index: dict[str, Imports] = {}
    for folder, names in folders.items():
        key = digest(b"imports", os.fsencode(folder))
        kept = _kept(cache.get(key)) if cache else {}
        now: dict[str, tuple[list[int], Imports]] = {}
        for name in names:
            path = os.path.join(folder, name)
            try:
                look = os.stat(path)
                stamp = [look.st_mtime_ns, look.st_size]
                before = kept.get(name)
                now[name] = before if before and before[0] == stamp else (stamp, imports_in(read_bytes(path)))
            except (OSError, ValueError, Unreadable):  # why is told where it is checked
                now[name] = ([], Imports())
            index[path] = now[name][1]
        if cache and any(kept.get(name) != entry for name, entry in now.items()):
            cache.put(key, {name: _plain(*entry) for name, entry in {**kept, **now}.items()})
    return index


def _plain(stamp: list[int], imports: Imports) -> list[object]:
    return [stamp, [list(each) for each in imports.names], imports.torch, imports.backward]


def _kept(entry: object) -> dict[str, tuple[list[int], Imports]]:
    """An entry of the cache; nothing where it is none."""
    try:
        return {
            name: (stamp, Imports(tuple((int(level), str(each)) for level, each in names), torch, backward))
            for name, (stamp, names, torch, backward) in (entry or {}).items()  # type: ignore[attr-defined]
        }
    except (AttributeError, TypeError, ValueError):
        return {}
