"""The text of a data file: rows of equal content share one line, named by the index in the first line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gradguard.ops import codec
from gradguard.ops.model import Form, ModuleRow, Op
from gradguard.ops.roles import rename


def serialise(ops: Iterable[Op], modules: Iterable[ModuleRow]) -> str:
    lines: dict[str, list[str]] = {}
    for op in sorted(ops, key=lambda o: o.name):
        lines.setdefault(row_text(op), []).append(op.name)
    for module in sorted(modules, key=lambda m: m.name):
        lines[_dump(codec.encode_module(module))] = [module.name]
    return "\n".join([_dump({"rows": list(lines.values())}), *lines]) + "\n"


def row_text(op: Op) -> str:
    """The line of an op without its names: a method and the function of the same name have the same one."""
    row = codec.encode_op(replace(op, forms=tuple(_with_self(f) for f in op.forms)))
    if _shares(op):
        row["first"] = "input"
    del row["name"], row["names"]
    return _dump(row)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shares(op: Op) -> bool:
    """Whether the row can be stored under `self` for a method and a function alike."""
    return all(f.params and f.params[0].name in ("self", "input") for f in op.forms)


def _with_self(form: Form) -> Form:
    return rename(form, "input", "self") if form.params and form.params[0].name == "input" else form
