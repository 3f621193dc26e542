"""Which forms a public callable has, before anything was observed."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradguard.ops.model import Form, Kind, Param
from tools.optable import generate_signatures
from tools.optable.generate_native import NativeForm


@dataclass(frozen=True, slots=True)
class Draft:
    form: Form
    told: bool
    """The form holds what torch's generator says that the call records."""
    strict: bool = True
    """Arguments are chosen between forms by type; a Python function takes what it is given."""


def drafts(name: str, function: Callable[..., Any], native: dict[str, list[NativeForm]]) -> list[Draft]:
    """Python functions by their signature; bound ones by the schemas of the native functions, else by the stubs."""
    bound = _native(name, function, native)
    if isinstance(function, operator.attrgetter):
        return [Draft(Form(params=(Param("self", Kind.TENSOR),)), False)]
    if inspect.isfunction(function) and not name.startswith("operator."):
        forms = generate_signatures.forms_of(name, function)
        if not (bound and _says_nothing(forms)):
            return [Draft(_with_formulas(form, bound), False, len(forms) > 1) for form in forms]
        return [Draft(_spread(f.form), False) for f in bound]
    if bound and not name.startswith("operator."):
        return [Draft(f.form, not f.composite) for f in bound]
    return [Draft(form, False) for form in generate_signatures.forms_of(name, function)]


def _native(name: str, function: Callable[..., Any], native: dict[str, list[NativeForm]]) -> list[NativeForm]:
    last = name.rsplit(".", 1)[-1]
    candidates = [name]
    called = getattr(function, "__name__", last)
    if getattr(torch._C._nn, called, None) is function:
        candidates.append(f"torch._C._nn.{called}")
    for prefix, module in (("torch._C._nn", torch._C._nn), ("torch", torch)):
        if getattr(module, last, None) is function or inspect.isfunction(function):
            candidates.append(f"{prefix}.{last}")
    return next((native[c] for c in candidates if c in native), [])


def _says_nothing(forms: list[Form]) -> bool:
    return all(
        all(p.name == "out" or (p.variadic and p.kind is Kind.ANY) for p in form.params) for form in forms
    )


def _spread(form: Form) -> Form:
    """A Python function that passes `*args` on takes its list of tensors one by one as well."""
    return replace(
        form, params=tuple(replace(p, variadic=True) if p.kind is Kind.TENSORS else p for p in form.params)
    )


def _with_formulas(form: Form, bound: list[NativeForm]) -> Form:
    """The formulas of the native function underneath, where it is one and the parameters have its names."""
    if len(bound) != 1 or (form.params and form.params[0].kind is not Kind.TENSOR):
        return form
    known = {p.name for p in form.params}
    return replace(form, formulas=tuple((n, f) for n, f in bound[0].form.formulas if n in known))
