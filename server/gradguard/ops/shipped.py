"""The text of a data file, written by the generator and read by the table.

The first line is an index; each following line is one row as JSON. In the index, `rows` names the spellings of
each row in order, and `groups` lists names that stand for the same operation though their rows differ in form.
A row may serve a function and the method of the same name: it is stored with `self`, and what a function calls
that argument stands under `first`; `out` is left out of a method's form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradguard.ops import codec
from gradguard.ops.model import Form, ModuleRow, Op
from gradguard.ops.roles import rename

GONE = "null"
"""The row of a name that this version no longer has."""


@dataclass(frozen=True, slots=True)
class Data:
    """One file, rows still as text."""

    rows: list[tuple[list[str], str]]
    groups: list[list[str]]


def serialise(ops: Iterable[Op], modules: Iterable[ModuleRow], groups: Sequence[Sequence[str]] = ()) -> str:
    """The text of a file that holds these rows."""
    lines: dict[str, list[str]] = {}
    by_name = {op.name: op for op in ops}
    for name in sorted(by_name, key=lambda n: (n.startswith("Tensor."), n)):
        text = row_text(by_name[name])
        function = by_name.get("torch." + name.removeprefix("Tensor."))
        if name.startswith("Tensor.") and text not in lines and function is not None:
            whole = row_text(function)
            if row_text(replace(function, forms=tuple(without_out(f) for f in function.forms))) == text:
                text = whole
        lines.setdefault(text, []).append(name)
    for module in sorted(modules, key=lambda m: m.name):
        lines[_dump(codec.encode_module(module))] = [module.name]
    return write(Data([(names, text) for text, names in lines.items()], [list(g) for g in groups]))


def write(data: Data) -> str:
    index = {"rows": [names for names, _ in data.rows], "groups": data.groups}
    return "\n".join([_dump(index), *(text for _, text in data.rows)]) + "\n"


def read(text: str, what: str) -> Data:
    """Raises ValueError naming `what` when index and rows do not fit."""
    head, _, body = text.partition("\n")
    lines = body.split("\n")[:-1]
    index = json.loads(head)
    if len(index["rows"]) != len(lines):
        raise ValueError(f"{what}: the index names {len(index['rows'])} rows, {len(lines)} follow")
    return Data(list(zip(index["rows"], lines)), index["groups"])


def row_text(op: Op) -> str:
    """The line of an op, without what its names say: a method and the function of the same name have the same one."""
    shares = all(f.params and f.params[0].name in ("self", "input") for f in op.forms)
    row: dict[str, Any] = {"forms": [codec.encode_form(_with_self(f) if shares else f) for f in op.forms]}
    if shares:
        row["first"] = "input"
    if op.since != "2.0":
        row["since"] = op.since
    if op.lenient:
        row["lenient"] = True
    if op.example is not None:
        row["example"] = codec.encode_call(op.example)
    return _dump(row)


def since(line: str, version: str) -> str:
    """The row with the version that brought it."""
    return _dump(json.loads(line) | {"since": version})


def op_of(row: dict[str, Any], name: str, names: Sequence[str], inplace: str, inplace_of: str) -> Op:
    """The op of that name from its row. Raises ValueError, KeyError or IndexError on a value that is no row."""
    forms = tuple(codec.decode_form(f) for f in row["forms"])
    if name.startswith("Tensor."):
        forms = tuple(without_out(f) for f in forms)
    elif "first" in row:
        forms = tuple(rename(f, "self", row["first"]) for f in forms)
    return Op(
        name,
        tuple(names),
        forms,
        inplace_of,
        inplace,
        row.get("since", "2.0"),
        codec.decode_call(row.get("example")),
        row.get("lenient", False),
    )


def without_out(form: Form) -> Form:
    """The form as a method: methods take no `out`."""
    if not any(p.name == "out" for p in form.params):
        return form
    return replace(
        form,
        params=tuple(p for p in form.params if p.name != "out"),
        aliases=tuple(a for a in form.aliases if a.of != "out"),
        writes=tuple(w for w in form.writes if w.role != "out"),
    )


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with_self(form: Form) -> Form:
    return rename(form, "input", "self") if form.params[0].name == "input" else form
