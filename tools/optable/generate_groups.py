"""Which public names stand for the same operation: `torch.sigmoid`, `Tensor.sigmoid`, `torch.special.expit`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch.testing._internal.common_methods_invocations import op_db

from gradguard.ops.model import Form, Op
from gradguard.ops.roles import rename
from gradguard.ops.shipped import without_out
from tools.optable.observe_samples import bare_operation


def groups(ops: Iterable[Op]) -> list[list[str]]:
    """Groups of two names or more, each sorted; names are grouped only where they behave alike."""
    alias = {a.name.rsplit(".", 1)[-1]: info.name.rsplit(".", 1)[-1] for info in op_db for a in info.aliases}
    buckets: dict[tuple[str, Any], list[str]] = defaultdict(list)
    for op in ops:
        last = op.name.rsplit(".", 1)[-1]
        inplace = last.endswith("_") and not last.startswith("__")
        word = bare_operation(op.name) or last.rstrip("_")
        buckets[alias.get(word, word) + "_" * inplace, behaviour(op)].append(op.name)
    return sorted(sorted(names) for names in buckets.values() if len(names) > 1)


def behaviour(op: Op) -> tuple[Any, ...]:
    """What the first form does to its first argument and results, whatever the names."""
    form = _plain(op.forms[0])
    return (
        frozenset((s.role, frozenset(s.when)) for s in form.saves),
        frozenset(form.frees),
        frozenset((a.result, a.of, a.kind, a.when, a.multi) for a in form.aliases),
        frozenset((w.role, w.when) for w in form.writes),
        form.reads,
        form.nodes,
        form.results,
    )


def _plain(form: Form) -> Form:
    form = without_out(form)
    if form.params and form.params[0].name in ("input", "tensor"):
        form = rename(form, form.params[0].name, "self")
    return form


def share_formulas(ops: list[Op], grouped: list[list[str]]) -> list[Op]:
    """Gives every member of a group the formulas that one of them has, where the parameters have the same names."""
    by_name = {op.name: op for op in ops}
    for names in grouped:
        known = [by_name[n] for n in names if by_name[n].forms[0].formulas]
        if not known:
            continue
        source = _plain(known[0].forms[0])
        for name in names:
            op = by_name[name]
            first = op.forms[0]
            if first.formulas or not first.params:
                continue
            called = first.params[0].name
            given = rename(source, "self", called) if called in ("input", "tensor") else source
            params = {p.name for p in first.params}
            kept = tuple((role, text) for role, text in given.formulas if role in params)
            by_name[name] = replace(op, forms=(replace(first, formulas=kept), *op.forms[1:]))
    return list(by_name.values())
