"""Renaming a role throughout a form.

A native function and the method of the same name differ in one thing only: what torch's documentation calls its
first argument, `input` or `self`. They share one row, which is stored with `self`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gradguard.ops.model import Alias, Condition, Form, Saved, Write


def rename(form: Form, old: str, new: str) -> Form:
    """The same form with the role `old` called `new`."""
    word = re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)")

    def role(name: str) -> str:
        return new if name == old else name

    def roles(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(role(n) for n in names)

    def condition(clauses: Condition) -> Condition:
        return tuple(word.sub(new, clause) for clause in clauses)

    return replace(
        form,
        params=tuple(replace(p, name=role(p.name)) for p in form.params),
        given=condition(form.given),
        nodes=condition(form.nodes),
        differentiable=roles(form.differentiable),
        nondifferentiable=roles(form.nondifferentiable),
        saves=tuple(Saved(role(s.role), condition(s.when), word.sub(new, s.why)) for s in form.saves),
        frees=condition(form.frees),
        aliases=tuple(
            Alias(a.result, role(a.of), a.kind, condition(a.when), a.multi, a.expands) for a in form.aliases
        ),
        writes=tuple(Write(role(w.role), condition(w.when), w.counted) for w in form.writes),
        reads=condition(form.reads),
        formulas=tuple((role(name), word.sub(new, text)) for name, text in form.formulas),
    )
