"""Pages and tables about ops, as text. Pure: the command line and the hover print what this returns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradguard.ops.model import AliasKind, Condition, Form, ModuleRow, Op
from gradguard.ops.table import Table

PRELUDE = {
    "x": "torch.rand(3, 3, requires_grad=True) * 1",
    "y": "torch.rand(3, 3, requires_grad=True) * 1",
    "z": "torch.rand(3, 3, requires_grad=True) * 1",
    "v": "torch.rand(3, requires_grad=True) * 1",
    "w": "torch.rand(3, requires_grad=True) * 1",
    "image": "torch.rand(1, 2, 8, 8, requires_grad=True) * 1",
    "batch": "torch.rand(2, 3, 3, requires_grad=True) * 1",
    "batch2": "torch.rand(2, 3, 3, requires_grad=True) * 1",
    "grid": "torch.rand(1, 3, 3, 2, requires_grad=True) * 1",
    "volume": "torch.rand(1, 2, 8, 8, 8, requires_grad=True) * 1",
    "signal": "torch.rand(1, 2, 8, requires_grad=True) * 1",
    "c": "torch.rand(3, 3, dtype=torch.complex64, requires_grad=True) * 1",
    "kernel": "torch.rand(4, 2, 3, 3, requires_grad=True) * 1",
    "i": "torch.tensor([0, 2, 1])",
    "j": "torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1]])",
    "m": "torch.tensor([[True, False, True]] * 3)",
    "sign": "torch.tensor([1.0, -1.0, 1.0])",
}
"""The variables that examples use; none of those that require grad is a leaf."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table that `gradguard ops` prints."""

    name: str
    saves: str
    views: str
    writes: str
    reads: str
    formula: str


def render_ops(table: Table, pattern: str = "") -> list[Line]:
    """Rows whose name matches: a shell pattern when it has `*`, `?` or `[`, else a part of the name."""
    return [
        _line(row)
        for name in matching(table.names(), pattern)
        if (row := table.op(name) or table.module(name))
    ]


def matching(names: Iterable[str], pattern: str) -> list[str]:
    if any(c in pattern for c in "*?["):
        return [
            n for n in names if fnmatch.fnmatch(n, pattern) or fnmatch.fnmatch(n.rpartition(".")[2], pattern)
        ]
    return [n for n in names if pattern.lower() in n.lower()]


def _line(row: Op | ModuleRow) -> Line:
    forms = row.forms
    return Line(
        row.name,
        _joined(phrase(f"`{s.role}`", s.when) for f in forms for s in f.saves),
        _joined(_alias(f, with_out=False) for f in forms),
        _joined(
            phrase(f"`{w.role}`" + ("" if w.counted else " (not counted)"), w.when)
            for f in forms
            for w in f.writes
            if w.role != "out"
        ),
        _joined(phrase("yes", f.reads) for f in forms if f.reads),
        _joined(f"{role}: {text}" for f in forms[:1] for role, text in f.formulas),
    )


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(p for p in parts if p))


def phrase(what: str, when: Condition) -> str:
    """`what`, with the condition in words."""
    if "*" in when or not when:
        return what
    return f"{what} {words(when)}"


def words(when: Condition) -> str:
    """A condition in words."""
    return " or ".join(dict.fromkeys(_clause(clause) for clause in when))


_ALIAS_FACTS = {
    "contiguous": "it is contiguous",
    "same_dtype": "the dtype is the same",
    "same_device": "the device is the same",
    "same_shape": "the shape is the same",
    "viewable": "the new shape needs no copy",
    "?": "(depends on shapes or values)",
}


def _clause(clause: str) -> str:
    parts = []
    for atom in clause.split(" & "):
        if atom in _ALIAS_FACTS:
            parts.append(_ALIAS_FACTS[atom])
        elif "=" in atom:
            parts.append(f"`{atom.replace('!=', ' != ') if '!=' in atom else atom.replace('=', ' == ')}`")
        elif atom.startswith("!"):
            parts.append(f"`{atom[1:]}` does not require grad")
        else:
            parts.append(f"`{atom}` requires grad")
    text = " and ".join(p for p in parts if not p.startswith("("))
    unsure = " (depends on shapes or values)" if _ALIAS_FACTS["?"] in parts else ""
    return f"if {text}{unsure}" if text else "in some cases (depends on shapes or values)"


# --- the page of an op ---------------------------------------------------------------------------------------------


def explain_op(name: str, table: Table) -> str:
    """The page of a callable or class as Markdown. Raises KeyError when the table has no such name."""
    row = table.op(name) or table.module(name)
    if row is None:
        raise KeyError(name)
    parts = [f"# {name}", _about(row, table)]
    several = len(row.forms) > 1
    for form in row.forms:
        if several:
            parts.append(f"## `{signature(row.name, form)}`{_given(form)}")
        parts.append(_form_page(form))
    if isinstance(row, ModuleRow) and row.container:
        parts.append("A container: what it records is what its children record.")
    parts += _examples(row)
    return "\n\n".join(p for p in parts if p) + "\n"


def _about(row: Op | ModuleRow, table: Table) -> str:
    lines = []
    if isinstance(row, Op):
        others = [n for n in row.names if n != row.name]
        if others:
            lines.append("Also: " + ", ".join(f"`{n}`" for n in others[:8]) + ".")
        if row.inplace:
            lines.append(f"In place: `{row.inplace}`.")
        if row.inplace_of:
            lines.append(f"Out of place: `{row.inplace_of}`.")
    if len(row.forms) == 1:
        lines.insert(0, f"`{signature(row.name, row.forms[0])}`")
    if row.since != "2.0":
        lines.append(f"Since torch {row.since}.")
    if table.note:
        lines.append(f"({table.note})")
    return "\n\n".join(lines)


def signature(name: str, form: Form) -> str:
    """The call with its parameters, as Python writes it."""
    out = []
    keyword = False
    for p in form.params:
        if p.keyword_only and not keyword:
            out.append("*")
            keyword = True
        star = "*" if p.variadic and p.default is None else ""
        out.append(f"{star}{p.name}" + (f"={p.default}" if p.default is not None else ""))
    return f"{name}({', '.join(out)})"


def _given(form: Form) -> str:
    return "" if "*" in form.given else f" {words(form.given)}"


def _form_page(form: Form) -> str:
    parts = [_backward(form), _alias(form, with_out=True), _effects(form)]
    return "\n\n".join(p for p in parts if p)


def _backward(form: Form) -> str:
    if not form.nodes:
        if any(a.kind is AliasKind.SAME for a in form.aliases):
            return "Records nothing for backward."
        return "Records nothing for backward; the result does not require grad." if form.results else ""
    lines = ["**What backward needs.** " + ("Nothing is kept." if not form.saves and not form.frees else "")]
    for saved in form.saves:
        reason = f": `{saved.why}`" if saved.why else ""
        lines.append(f"- `{saved.role}`, {words(saved.when) if '*' not in saved.when else 'always'}{reason}")
    if not form.saves and form.frees:
        lines.append("- values of its own, none of which is an argument or a result")
    if form.nondifferentiable and form.results != form.nondifferentiable:
        lines.append(
            f"\nNever requires grad: {', '.join(f'`{_field(form, r)}`' for r in form.nondifferentiable)}."
        )
    if form.formulas:
        lines.append("\n**Gradient.**")
        lines += [f"- for `{role}`: `{text}`" for role, text in form.formulas]
    if form.nodes and "*" not in form.nodes:
        lines.append(f"\nRecorded {words(form.nodes)}.")
    lines.append(_second(form))
    return "\n".join(line for line in lines if line)


def _second(form: Form) -> str:
    if not form.frees:
        return "\nA second backward through it is fine."
    if "*" in form.frees:
        return "\nA second backward needs `retain_graph=True`."
    return f"\nA second backward needs `retain_graph=True` {words(form.frees)}."


def _field(form: Form, role: str) -> str:
    if role.startswith("result") and role[6:].isdigit() and int(role[6:]) < len(form.field_names):
        return form.field_names[int(role[6:])]
    return role


def _alias(form: Form, *, with_out: bool) -> str:
    said = []
    for alias in form.aliases:
        if alias.of == "out" and not with_out:
            continue
        if alias.kind is AliasKind.SAME:
            text = f"`{alias.result}` is `{alias.of}` itself"
        else:
            text = f"`{alias.result}` shares memory with `{alias.of}`"
        text = phrase(text, alias.when)
        if alias.multi:
            text += ", one of several views: writing one in place is refused while a gradient is recorded"
        if alias.expands:
            text += ", several of its elements may be one place in memory"
        said.append(text)
    return "; ".join(said) + ("." if said and with_out else "")


def _effects(form: Form) -> str:
    lines = []
    for write in form.writes:
        text = phrase(f"Writes `{write.role}`", write.when)
        lines.append(text + ("." if write.counted else "; the version counter does not see it."))
    if form.reads:
        lines.append(phrase("Waits for the device", form.reads) + ".")
    if form.unobserved:
        lines.append(f"Not observed: {form.unobserved}.")
    return "\n".join(lines)


# --- examples ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Example:
    """A program that torch runs: `raises` says whether its last line does."""

    code: str
    raises: bool
    about: str


def _examples(row: Op | ModuleRow) -> list[str]:
    out = []
    for example in examples(row):
        title = "Not safe" if example.raises else "Safe"
        out.append(f"**{title}**: {example.about}\n\n```python\n{example.code}\n```")
    return out


def examples(row: Op | ModuleRow) -> list[Example]:
    """At most one safe write and one that makes backward raise, for the example call of the row."""
    if not row.example or not row.forms:
        return []
    form = row.forms[0]
    arguments = row.example if isinstance(row, Op) else tuple(row.example[1].split(", "))
    named = dict(zip((p.name for p in form.params), arguments))
    found: dict[bool, Example] = {}
    written = {w.role for w in form.writes}
    for role, variable in [*named.items(), ("result", "result")]:
        if variable not in PRELUDE and role != "result":
            continue
        if role in written or (role == "result" and not _one_result(form)):
            continue
        saved = next((s for s in form.saves if s.role == role), None)
        if saved is not None and "*" not in saved.when and not _all_roles(saved.when, named):
            continue
        if list(named.values()).count(variable) > 1:
            continue
        raises = saved is not None
        if raises not in found:
            found[raises] = _example(row, arguments, variable, role, raises)
    return [found[k] for k in sorted(found)]


def _one_result(form: Form) -> bool:
    plain = form.results == ("result",) and not form.list_result and "result" not in form.nondifferentiable
    return plain and not any(a.kind is not AliasKind.SAME or a.of != "out" for a in form.aliases)


def _all_roles(when: Condition, named: dict[str, str]) -> bool:
    """Some clause speaks only of arguments that require grad in the example."""
    grads = {role for role, v in named.items() if v in PRELUDE and "requires_grad" in PRELUDE[v]}
    return any(set(clause.split(" & ")) <= grads for clause in when)


def _example(
    row: Op | ModuleRow, arguments: tuple[str, ...], variable: str, role: str, raises: bool
) -> Example:
    used = [n for n in PRELUDE if re.search(rf"\b{n}\b", " ".join(arguments))]
    lines = ["import torch", "", *(f"{n} = {PRELUDE[n]}" for n in used)]
    if isinstance(row, Op):
        lines.append(f"result = {call_text(row.name, arguments)}")
    else:
        lines += [f"module = {row.name}({row.example[0]})", f"result = module({', '.join(arguments)})"]
    lines.append("loss = result.real.sum()" if "c" in used else "loss = result.sum()")
    write = f"{variable}.zero_()"
    lines += ["with torch.no_grad():", f"    {write}", "loss.backward()" + ("  # raises" if raises else "")]
    why = "backward still needs" if raises else "backward does not need"
    return Example("\n".join(lines), raises, f"{why} `{role}`.")


def call_text(name: str, arguments: tuple[str, ...]) -> str:
    """The call of a public name as Python writes it."""
    if name.startswith("Tensor."):
        return f"{arguments[0]}.{name[7:]}({', '.join(arguments[1:])})"
    if name.startswith("operator."):
        return f"__import__('operator').{name[9:]}({', '.join(arguments)})"
    return f"{name}({', '.join(arguments)})"
