"""The formula of a row that was only observed: its example call is run, and the node it records names the formula.

`a * b` and `F.layer_norm` have no entry of their own in `derivatives.yaml`; the one node that they record has.
A call that records several nodes has no formula that fits on a line, and gets none.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch

from gradguard.ops.examples import untouched
from gradguard.ops.model import Form, Op
from tools.optable import generate_native
from tools.optable.observe import tensors_in

_WORD = re.compile(r"(?<![\w.:>])[A-Za-z_]\w*(?![\w(:])")
_RESULT = re.compile(r"\bresult0\b")


@dataclass(frozen=True, slots=True)
class Derivative:
    """What `derivatives.yaml` says of one node."""

    tensors: frozenset[str]
    """Arguments of the native function that are tensors."""
    formulas: tuple[tuple[str, str], ...]
    """Argument and formula, in the names of the native function."""


def derivatives() -> dict[str, Derivative]:
    """What is known of each node, by its name: `MulBackward0`."""
    known: dict[str, Derivative] = {}
    for function in generate_native.matched().values():
        info = function.info.get("Default") if function.info else None
        if info is None or info.op is None or not info.has_derivatives:
            continue
        tensors = frozenset(
            a.name for a in function.func.func.arguments.flat_non_out if a.type.is_tensor_like()
        )
        known.setdefault(info.op, Derivative(tensors, tuple(generate_native.formulas_of(info))))
    return known


def given(ops: Iterable[Op], derivatives: Mapping[str, Derivative]) -> list[Op]:
    """The rows, with formulas where the one node that their example records has some."""
    return [_with_formulas(op, derivatives) for op in ops]


def _with_formulas(op: Op, derivatives: Mapping[str, Derivative]) -> Op:
    call = op.example
    if call is None or any(form.formulas for form in op.forms):
        return op
    form = op.forms[call.form]
    known = derivatives.get(_node(untouched(op, call))) if form.saves else None
    formulas = _named(known, form) if known else ()
    if not formulas:
        return op
    forms = list(op.forms)
    forms[call.form] = replace(form, formulas=formulas)
    return replace(op, forms=tuple(forms))


def _node(code: str) -> str:
    """Name of the only node between the result of an example and its variables; empty where there are more."""
    torch.default_generator.manual_seed(0)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code.rpartition("\n")[0], "<example>", "exec"), names)
        except Exception:
            return ""
    results = tensors_in(names.pop("result", None))
    variables = {t.grad_fn for value in names.values() for t in tensors_in(value)}
    found: dict[torch.autograd.graph.Node, None] = {}
    todo = [t.grad_fn for t in results]
    while todo:
        node = todo.pop()
        if node is None or node in found or node in variables or node.name().endswith("AccumulateGrad"):
            continue
        found[node] = None
        todo += [inner for inner, _ in node.next_functions]
    return next(iter(found)).name() if len(found) == 1 else ""


def _named(derivative: Derivative, form: Form) -> tuple[tuple[str, str], ...]:
    """The formulas in the roles of the form; those that need a tensor which the form does not have are left out."""
    roles = {param.name for param in form.params}
    first = form.params[0].name if form.params else ""
    names = {name: name if name in roles else first if name == "self" else "" for name in derivative.tensors}
    kept = []
    for argument, formula in derivative.formulas:
        words = set(_WORD.findall(formula)) & derivative.tensors
        if names.get(argument) and all(names[word] for word in words):
            text = _WORD.sub(lambda word: names.get(word.group()) or word.group(), formula)
            kept.append((names[argument], _RESULT.sub("result", text) if len(form.results) == 1 else text))
    return tuple(kept)
