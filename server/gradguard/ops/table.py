"""The op table as shipped: found by name, decoded row by row on first use.

The data of the oldest version described is one file, one row a line under an index; every newer version is a file
of the rows that differ. Loading reads the indexes only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any

from gradguard.ops import codec, shipped
from gradguard.ops.model import ModuleRow, Op
from gradguard.ops.names import partners

BASE_VERSION = "2.13"
VERSIONS: tuple[str, ...] = ("2.13", "2.14")
"""Versions of torch that the data describes, oldest first."""

UNLIKE = frozenset({"bernoulli", "fill", "zero", "copy", "set", "resize", "eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal", "logical_and", "logical_or", "logical_not", "logical_xor", "floor_divide"})  # fmt: skip
"""Methods whose form without the underscore is missing, draws otherwise, or gives another dtype."""


class Table:
    """What one version of torch does. Rows are immutable; lookups are cached."""

    def __init__(self, version: str, note: str, rows: dict[str, str], names: dict[str, list[str]]) -> None:
        self.version = version
        self.note = note
        """What the user should know about the choice of version; empty when it is exact."""
        self._rows = rows
        self._names = names
        self._ops: dict[str, Op | None] = {}
        self._modules: dict[str, ModuleRow | None] = {}

    def op(self, name: str) -> Op | None:
        """The row of a callable by any of its public names; `Op.name` is the name asked for."""
        if name not in self._ops:
            row = self._row(name)
            self._ops[name] = None if row is None or "module" in row else self._op(name, row)
        return self._ops[name]

    def module(self, name: str) -> ModuleRow | None:
        """The row of a class of `torch.nn` or `torch.optim`, by its public name."""
        if name not in self._modules:
            row = self._row(name)
            self._modules[name] = None if row is None or "module" not in row else codec.decode_module(row)
        return self._modules[name]

    def names(self) -> Iterable[str]:
        """Every public name with a row, callables and classes, sorted."""
        return sorted(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def _op(self, name: str, row: dict[str, Any]) -> Op:
        inplace, inplace_of = partners(name, self._rows)
        return shipped.op_of(row, name, self._names.get(name, [name]), inplace, inplace_of)

    def _row(self, name: str) -> dict[str, Any] | None:
        line = self._rows.get(name)
        if line is None:
            return None
        row: dict[str, Any] = json.loads(line)
        return row


@lru_cache(maxsize=8)
def load(version: str | None = None) -> Table:
    """The table for a version such as `2.13` or `2.14.1+cpu`; None means the newest described.

    Raises ValueError for a text that is no version and for data that cannot be read.
    """
    chosen, note = choose(version)
    rows, groups = rows_of(chosen)
    return Table(chosen, note, rows, groups)


def rows_of(version: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The text of each row by name, and the group of each name, for a described version."""
    rows: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for described in VERSIONS:
        if key(described) <= key(version):
            data = _read(f"{described}.jsonl")
            for names, line in data.rows:
                for name in names:
                    rows[name] = line
            groups.update({name: group for group in data.groups for name in group})
    for name in [name for name, line in rows.items() if line == shipped.GONE]:
        del rows[name]
    return rows, groups


def choose(version: str | None) -> tuple[str, str]:
    """The described version that stands for `version`, and a note when it is another one."""
    if version is None:
        return VERSIONS[-1], ""
    m = re.match(r"(\d+)\.(\d+)", version)
    if m is None:
        raise ValueError(f"not a torch version: {version!r} (expected something like '{VERSIONS[-1]}')")
    wanted = f"{m[1]}.{m[2]}"
    older = [v for v in VERSIONS if key(v) <= key(wanted)]
    if not older:
        return BASE_VERSION, f"torch {wanted} is older than the op table; using {BASE_VERSION}"
    if older[-1] == wanted:
        return wanted, ""
    return older[-1], f"torch {wanted} is not in the op table; using {older[-1]}"


def key(version: str) -> tuple[int, ...]:
    """Sorts versions."""
    return tuple(int(part) for part in version.split("."))


def _read(name: str) -> shipped.Data:
    text = resources.files("gradguard.ops").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    return shipped.read(text, f"op data {name}")
