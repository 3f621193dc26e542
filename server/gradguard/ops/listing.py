"""The table of ops that people search: one line of short texts for each row."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradguard.ops.formulas import readable
from gradguard.ops.model import Alias, AliasKind, Form, ModuleRow, Op
from gradguard.ops.table import Table
from gradguard.ops.wording import grouped, phrase, words


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table that `gradguard ops` prints."""

    name: str
    saves: str
    views: str
    writes: str
    reads: str
    formula: str
    note: str = ""
    """Why there is nothing to say, or how it is known."""


LONGEST = 160
"""Characters of a formula; the page of the op has all of it."""


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
        _by_form(forms, _saves),
        _by_form(forms, lambda form: _joined(aliases(form, with_out=False))),
        _by_form(forms, _writes),
        _by_form(forms, lambda form: phrase("yes", form.reads) if form.reads else ""),
        _joined(
            _short(f"{roles}: {readable(text)}")
            for roles, text in shared_formulas(forms[0].formulas if forms else ())
        ),
        _note(row),
    )


def _saves(form: Form) -> str:
    return _joined(phrase(roles, when) for roles, when in grouped((s.role, s.when) for s in form.saves))


def _writes(form: Form) -> str:
    return _joined(
        phrase(roles + ("" if counted else " (not counted)"), when)
        for counted in (True, False)
        for roles, when in grouped(
            (w.role, w.when) for w in form.writes if w.role != "out" and w.counted == counted
        )
    )


def _by_form(forms: Sequence[Form], tell: Callable[[Form], str]) -> str:
    """What each form does; where they differ, each after the arguments that tell it from the others."""
    texts = [tell(form) for form in forms]
    if len(set(texts)) < 2:
        return texts[0] if texts else ""
    labels = _labels(forms)
    together: dict[str, list[str]] = {}
    for label, text in zip(labels, texts):
        if text and label not in together.setdefault(text, []):
            together[text].append(label)
    return "; ".join(f"{', '.join(found)}: {text}" for text, found in together.items())


def _labels(forms: Sequence[Form]) -> list[str]:
    """`(input, dim)` for each form, with the kind of an argument where two forms have the same names."""
    plain = [tuple(p.name for p in f.params if p.default is None) for f in forms]
    out = []
    for form, names in zip(forms, plain):
        same = [f for f, other in zip(forms, plain) if other == names]
        kinds = {p.name: {q.kind for f in same for q in f.params if q.name == p.name} for p in form.params}
        told = [
            f"{p.name}: {p.kind.value}" if len(kinds[p.name]) > 1 else p.name
            for p in form.params
            if p.default is None
        ]
        given = "" if "*" in form.given else f" {words(form.given)}"
        out.append(f"({', '.join(told)}){given}")
    return out


def _note(row: Op | ModuleRow) -> str:
    if isinstance(row, ModuleRow) and row.container:
        return "does what its children do"
    if isinstance(row, ModuleRow) and not row.forms:
        why = dict(row.extra).get("unobserved", "")
        return f"not observed: {why}" if why else "its methods have rows of their own"
    return next((f"not observed: {f.unobserved}" for f in row.forms if f.unobserved), "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 4].rstrip() + " ..."


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(p for p in parts if p))


def shared_formulas(formulas: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Formulas with the arguments that each is for, joined by commas."""
    together: dict[str, list[str]] = {}
    for role, text in formulas:
        together.setdefault(text, []).append(role)
    return [(", ".join(roles), text) for text, roles in together.items()]


def aliases(form: Form, *, with_out: bool) -> list[str]:
    """A text for each way in which a result shares memory with an argument."""
    return [_alias(alias) for alias in form.aliases if alias.of != "out" or with_out]


def _alias(alias: Alias) -> str:
    if alias.kind is AliasKind.SAME:
        text = f"`{alias.result}` is `{alias.of}` itself"
    else:
        text = f"`{alias.result}` shares memory with `{alias.of}`"
    text = phrase(text, alias.when)
    if alias.multi:
        text += ", one of several views: writing one in place is refused while a gradient is recorded"
    if alias.expands:
        text += ", several of its elements may be one place in memory"
    return text
