"""The corrections file: where the two sources disagree, and what neither can show on a machine without a GPU.

Each entry of `disagreements` says for which names, in which respect, and why what was seen is right. Each entry of
`changes` sets fields of a form, each entry of `additions` gives a name that cannot be called here the forms of
another, with the reason. Entries that no longer apply are errors, so that the file stays
true.
"""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradguard.ops import codec
from gradguard.ops.model import Form, ModuleRow, Op

FILE = Path(__file__).parent / "corrections.json"


@dataclass(frozen=True, slots=True)
class Resolved:
    names: str
    """Name, or a pattern with `*`."""
    about: str
    """Start of the text of the disagreement: `writes`, `saves result`, ..."""
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    names: tuple[str, ...]
    forms: tuple[int, ...] | None
    """Positions of the forms; None means all."""
    set: dict[str, Any]
    reason: str
    unsure: tuple[str, ...] = ()
    """Roles, or patterns with `*`: whether the form saves them is left open."""


@dataclass(frozen=True, slots=True)
class Addition:
    name: str
    like: str
    """The row whose forms it gets."""
    reason: str


@dataclass(frozen=True, slots=True)
class Corrections:
    resolved: tuple[Resolved, ...]
    changes: tuple[Change, ...]
    additions: tuple[Addition, ...]


def load(path: Path = FILE) -> Corrections:
    """Raises ValueError naming the file and the entry that is wrong."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    resolved, changes = [], []
    for index, entry in enumerate(raw["disagreements"]):
        if set(entry) != {"names", "about", "reason"}:
            raise ValueError(
                f"{path}: disagreements[{index}]: expected names, about, reason; got {sorted(entry)}"
            )
        resolved.append(Resolved(**entry))
    for index, entry in enumerate(raw["changes"]):
        if not {"names", "set", "reason"} <= set(entry) <= {"names", "forms", "set", "reason", "unsure"}:
            raise ValueError(f"{path}: changes[{index}]: expected names, set, reason; got {sorted(entry)}")
        forms = tuple(entry["forms"]) if "forms" in entry else None
        changes.append(
            Change(
                tuple(entry["names"]), forms, entry["set"], entry["reason"], tuple(entry.get("unsure", ()))
            )
        )
    additions = []
    for index, entry in enumerate(raw["additions"]):
        if set(entry) != {"name", "like", "reason"}:
            raise ValueError(f"{path}: additions[{index}]: expected name, like, reason; got {sorted(entry)}")
        additions.append(Addition(**entry))
    return Corrections(tuple(resolved), tuple(changes), tuple(additions))


def unresolved(disagreements: list[tuple[str, str]], corrections: Corrections) -> tuple[list[str], list[str]]:
    """Disagreements without an entry, and entries without a disagreement."""
    used: set[int] = set()
    open_ones: list[str] = []
    for name, text in disagreements:
        index = next((i for i, r in enumerate(corrections.resolved) if _about(r, name, text)), None)
        if index is None:
            open_ones.append(f"{name}: {text}")
        else:
            used.add(index)
    idle = [f"{r.names}: {r.about}" for i, r in enumerate(corrections.resolved) if i not in used]
    return open_ones, idle


def _about(resolved: Resolved, name: str, text: str) -> bool:
    return fnmatch.fnmatchcase(name, resolved.names) and text.startswith(resolved.about)


def apply(
    ops: list[Op], modules: list[ModuleRow], corrections: Corrections
) -> tuple[list[Op], list[ModuleRow]]:
    """The rows with the changes made. Raises ValueError naming a change whose row does not exist."""
    by_name: dict[str, Op] = {op.name: op for op in ops}
    by_class: dict[str, ModuleRow] = {row.name: row for row in modules}
    for change in corrections.changes:
        for name in change.names:
            if name in by_name:
                by_name[name] = replace(by_name[name], forms=_changed(by_name[name].forms, change))
            elif name in by_class:
                by_class[name] = replace(by_class[name], forms=_changed(by_class[name].forms, change))
            else:
                raise ValueError(f"{FILE}: no row {name!r} to change")
    for addition in corrections.additions:
        if addition.name in by_name or addition.like not in by_name:
            raise ValueError(
                f"{FILE}: cannot add {addition.name!r} like {addition.like!r}: there, or no such row"
            )
        forms = [
            replace(f, source="corrected", unobserved=addition.reason) for f in by_name[addition.like].forms
        ]
        by_name[addition.name] = Op(addition.name, forms=tuple(forms))
    return list(by_name.values()), list(by_class.values())


def _changed(forms: tuple[Form, ...], change: Change) -> tuple[Form, ...]:
    out = list(forms)
    for position in range(len(forms)) if change.forms is None else change.forms:
        row = codec.encode_form(forms[position]) | change.set | {"source": "corrected"}
        if change.unsure:
            row["saves"] = [
                [role, ["?"]] if any(fnmatch.fnmatchcase(role, p) for p in change.unsure) else [role, *rest]
                for role, *rest in row.get("saves", ())
            ]
        out[position] = codec.decode_form(row)
    return tuple(out)
