"""The page of an op as Markdown. Pure: the command line and the hover print what this returns."""

from __future__ import annotations

from gradguard.ops.examples import absence, examples
from gradguard.ops.formulas import readable
from gradguard.ops.listing import aliases, shared_formulas
from gradguard.ops.model import AliasKind, Form, ModuleRow, Op
from gradguard.ops.table import Table
from gradguard.ops.wording import grouped, phrase, words


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
        read = row.example is not None and row.example.attribute
        lines.insert(0, f"`{row.name if read else signature(row.name, row.forms[0])}`")
    if row.since != "2.0":
        lines.append(f"Since torch {row.since}.")
    lines.append(f"As in torch {table.version}" + (f": {table.note}." if table.note else "."))
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
    parts = [_backward(form), _alias_text(form), _effects(form)]
    return "\n\n".join(p for p in parts if p)


def _backward(form: Form) -> str:
    if not form.nodes:
        if any(a.kind is AliasKind.SAME for a in form.aliases):
            return "Records nothing for backward."
        return "Records nothing for backward; the result does not require grad." if form.results else ""
    lines = ["**What backward needs.** " + ("Nothing is kept." if not form.saves and not form.frees else "")]
    whys = {s.role: readable(s.why) for s in form.saves}
    for roles, when in grouped((s.role, s.when) for s in form.saves):
        reasons = list(dict.fromkeys(whys[s.role] for s in form.saves if s.when == when and whys[s.role]))
        reason = f": `{'`, `'.join(reasons)}`" if reasons else ""
        lines.append(f"- {roles}, {words(when) if '*' not in when else 'always'}{reason}")
    if not form.saves and form.frees:
        lines.append("- values of its own, none of which is an argument or a result")
    if form.nondifferentiable and form.results != form.nondifferentiable:
        lines.append(
            f"\nNever requires grad: {', '.join(f'`{_field(form, r)}`' for r in form.nondifferentiable)}."
        )
    if form.formulas:
        lines.append("\n**Gradient.**")
        lines += [
            f"- for `{roles.replace(', ', '`, `')}`: `{readable(text)}`"
            for roles, text in shared_formulas(form.formulas)
        ]
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


def _alias_text(form: Form) -> str:
    said = aliases(form, with_out=True)
    return "; ".join(said) + ("." if said else "")


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


def _examples(row: Op | ModuleRow) -> list[str]:
    out = []
    for example in examples(row):
        title = "Not safe" if example.raises else "Safe"
        out.append(f"**{title}**: {example.about}\n\n```python\n{example.code}\n```")
    return [*out, absence(row)]
