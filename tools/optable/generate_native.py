"""What torch's code generator knows: the Python forms of every native function and what each records.

`native_functions.yaml` and `derivatives.yaml` ship inside the torch wheel. From them torch itself generates its
argument parser and its autograd nodes; this module reads the same files with the same library, so that the
order of overloads, the parameter names and the guards around what a node saves are torch's own.

Nothing here imports torch.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torchgen
from torchgen.api import cpp
from torchgen.api.autograd import (
    DifferentiabilityInfo,
    NativeFunctionWithDifferentiabilityInfo,
    dispatch_strategy,
    gen_differentiable_outputs,
    match_differentiability_info,
)
from torchgen.api.types import BaseCType, OptionalCType, tensorT
from torchgen.context import native_function_manager
from torchgen.gen import parse_native_yaml
from torchgen.model import BaseType, ListType, NativeFunction, OptionalType, SchemaKind, Type, Variant
from torchgen.packaged.autograd.gen_python_functions import (
    group_overloads,
    load_signatures,
    should_generate_py_binding,
)
from torchgen.packaged.autograd.gen_trace_type import MANUAL_AUTOGRAD
from torchgen.packaged.autograd.gen_variable_type import DONT_REQUIRE_DERIVATIVE
from torchgen.packaged.autograd.load_derivatives import load_derivatives

from gradguard.ops.model import ALWAYS, NEVER, Alias, AliasKind, Condition, Form, Kind, Param, Saved, Write

NAMESPACES = {
    "nn": "torch._C._nn",
    "linalg": "torch.linalg",
    "fft": "torch.fft",
    "special": "torch.special",
}
"""Where torch binds the native functions of each Python module of the yaml file."""

NUMBERS_AS_TENSORS = frozenset(
    f"{base}{suffix}"
    for base in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")
    for suffix in ("", "_")
)
"""Functions whose tensor parameter takes a Python number, as torch's argument parser lists them."""


NOT_IMPLEMENTED = "not implemented"
"""Stands for the formula where torch records a node whose backward raises."""


@dataclass(frozen=True, slots=True)
class NativeForm:
    """A form with what is known of its origin."""

    form: Form
    schema: str
    """Name with overload, such as `add.Tensor`."""
    composite: bool
    """Made of other functions on the CPU: what it records there is not written in the yaml files."""


_ROOT = os.path.join(os.path.dirname(torchgen.__file__), "packaged")


@lru_cache(maxsize=1)
def matched() -> dict[str, NativeFunctionWithDifferentiabilityInfo]:
    """Every native function with its derivatives, by name with overload (`add.Tensor`)."""
    native_yaml = os.path.join(_ROOT, "ATen/native/native_functions.yaml")
    tags_yaml = os.path.join(_ROOT, "ATen/native/tags.yaml")
    functions = parse_native_yaml(native_yaml, tags_yaml).native_functions
    infos, _ = load_derivatives(os.path.join(_ROOT, "autograd/derivatives.yaml"), native_yaml, tags_yaml)
    return {str(m.func.func.name): m for m in match_differentiability_info(functions, infos)}


def load() -> dict[str, list[NativeForm]]:
    """Every native function bound to Python, by public name, forms in the order the argument parser tries."""
    deprecated_yaml = os.path.join(_ROOT, "autograd/deprecated.yaml")
    functions = [m.func for m in matched().values()]
    bound = [f for f in functions if should_generate_py_binding(f)]
    # `copy_`, `nonzero` and others have bindings written by hand, yet the same schema.
    table: dict[str, list[NativeForm]] = {}
    for method in (True, False):
        pairs = load_signatures(bound, deprecated_yaml, method=method)
        grouped: dict[str, list[Any]] = defaultdict(list)
        for pair in pairs:
            for name in _public_names(pair.function, pair.signature.name, method):
                grouped[name].append(pair)
        for name, overloads in grouped.items():
            table[name] = _forms(overloads, matched(), method)
    return table


def _public_names(f: NativeFunction, name: str, method: bool) -> list[str]:
    if method:
        return [f"Tensor.{name}"] if f.python_module is None and Variant.method in f.variants else []
    if f.python_module is None:
        return [f"torch.{name}"] if Variant.function in f.variants else []
    if f.python_module not in NAMESPACES:
        return []
    prefix = f.python_module + "_"
    short = name[len(prefix) :] if name.startswith(prefix) else name
    return [f"{NAMESPACES[f.python_module]}.{short}"]


def _forms(
    overloads: Sequence[Any], matched: dict[str, NativeFunctionWithDifferentiabilityInfo], method: bool
) -> list[NativeForm]:
    forms: list[NativeForm] = []
    for group in group_overloads(overloads):
        signature, function = group.signature, group.base
        first = "self" if method else "input"
        params = _params(signature, method, out=group.outplace is not None)
        native = _facts(matched[str(function.func.name)], params, first)
        forms.append(native)
        if signature.name in NUMBERS_AS_TENSORS and not signature.deprecated:
            forms.append(_number_form(native))
    return forms


# --- parameters -------------------------------------------------------------------------------------------------


def _params(signature: Any, method: bool, *, out: bool) -> tuple[Param, ...]:
    """Parameters as the argument parser takes them; `self` is `input` for functions, as torch documents it."""
    params: list[Param] = []
    if method:
        params.append(Param("self", Kind.TENSOR))
    for argument in signature.input_args:
        params.append(_param(argument, method=method, keyword_only=False))
    for argument in (*signature.input_kwargs, *signature.tensor_options_args):
        params.append(_param(argument, method=method, keyword_only=True))
    if out and not method:
        kind = Kind.TENSORS if len(signature.output_args.outputs) > 1 else Kind.TENSOR
        params.append(Param("out", kind, "None", keyword_only=True, optional=True))
    positional = [i for i, p in enumerate(params) if not p.keyword_only and p.name != "self"]
    if len(positional) == 1 and params[positional[0]].kind is Kind.INTS:
        params[positional[0]] = replace(params[positional[0]], variadic=True)
    return tuple(params)


def _param(argument: Any, *, method: bool, keyword_only: bool) -> Param:
    kind, optional = _kind(argument.type)
    name = argument.name
    if name == "self" and not method and kind in (Kind.TENSOR, Kind.NUMBER):
        name = "input"
    default = None if argument.default is None else python_default(argument.default)
    return Param(name, kind, default, keyword_only, optional or default == "None")


_BASE_KINDS = {  # by name, as members of the enum come and go between versions
    "Tensor": Kind.TENSOR,
    "Scalar": Kind.NUMBER,
    "int": Kind.INT,
    "SymInt": Kind.INT,
    "DeviceIndex": Kind.INT,
    "bool": Kind.BOOL,
    "SymBool": Kind.BOOL,
    "float": Kind.FLOAT,
    "str": Kind.STR,
    "Dimname": Kind.STR,
    "ScalarType": Kind.DTYPE,
}


def _kind(kind: Type) -> tuple[Kind, bool]:
    """The kind of a schema type and whether None is accepted."""
    if isinstance(kind, OptionalType):
        return _kind(kind.elem)[0], True
    if isinstance(kind, ListType):
        element, _ = _kind(kind.elem)
        if element is Kind.TENSOR:
            return Kind.TENSORS, False
        return (Kind.INTS, False) if element is Kind.INT else (Kind.ANY, False)
    if isinstance(kind, BaseType):
        return _BASE_KINDS.get(kind.name.name, Kind.ANY), False
    return Kind.ANY, False


_CPP_DEFAULTS = {
    "nullptr": "None",
    "::std::nullopt": "None",
    "std::nullopt": "None",
    "c10::nullopt": "None",
    "{}": "None",
    "true": "True",
    "false": "False",
    # The schema means 1; the argument parser of Python does not know the word and takes 0.
    "at::Reduction::Mean": "0",
    "c10::MemoryFormat::Contiguous": "None",
}


def python_default(text: str) -> str:
    """A default as a Python literal; what Python cannot say (a C++ enum) reads as None."""
    if text in _CPP_DEFAULTS:
        return _CPP_DEFAULTS[text]
    if text.startswith("{") and text.endswith("}"):
        text = f"[{text[1:-1]}]"
    try:
        return repr(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return "None"


# --- what a node records ----------------------------------------------------------------------------------------


def _facts(fn: NativeFunctionWithDifferentiabilityInfo, params: tuple[Param, ...], first: str) -> NativeForm:
    f = fn.func
    info = fn.info.get("Default") if fn.info else None
    roles = _Roles(f, params, first)
    results, fields, is_list = roles.results, roles.fields, roles.list_result
    writes = _writes(f, params, roles)
    composite = f.has_composite_implicit_autograd_kernel or cpp.name(f.func) in MANUAL_AUTOGRAD
    base = f.func.name.name.base
    recorded = (
        info is not None
        and info.has_derivatives
        and base not in DONT_REQUIRE_DERIVATIVE
        and str(f.func.name.name) not in DONT_REQUIRE_DERIVATIVE
        and f.func.kind() is not SchemaKind.out
    )
    saves: tuple[Saved, ...] = ()
    frees: Condition = NEVER
    formulas: tuple[tuple[str, str], ...] = ()
    differentiable: tuple[str, ...] = ()
    nondifferentiable: tuple[str, ...] = ()
    if recorded and info is not None:
        differentiable = tuple(
            roles.of(name)
            for name in roles.argument_names
            if any(name in d.var_names for d in info.derivatives)
        )
        saves, frees = _saves(f, info, roles)
        formulas = tuple((roles.of(name), formula) for name, formula in formulas_of(info))
        with native_function_manager(f):
            kept = {o.name for o in gen_differentiable_outputs(fn)}
        nondifferentiable = tuple(
            role for name, role in zip(cpp.return_names(f), roles.results) if name not in kept and not is_list
        )
    elif not composite:
        with native_function_manager(f):
            outputs = gen_differentiable_outputs(fn)
        inputs = [n for n in roles.argument_names if n in roles.tensors]
        refused = base in DONT_REQUIRE_DERIVATIVE or f.func.kind() is SchemaKind.out
        if outputs and inputs and not refused and dispatch_strategy(fn) == "use_derived":
            # torch records a node all the same; its backward raises.
            recorded = True
            differentiable = tuple(roles.of(n) for n in inputs)
            formulas = tuple((role, NOT_IMPLEMENTED) for role in differentiable)
        else:
            nondifferentiable = results
    form = Form(
        params=params,
        results=results,
        field_names=fields,
        list_result=is_list,
        nodes=ALWAYS if recorded else NEVER,
        differentiable=differentiable,
        nondifferentiable=nondifferentiable,
        saves=saves,
        frees=frees,
        aliases=_aliases(f, params, roles),
        writes=writes,
        reads=ALWAYS if {"data_dependent_output", "dynamic_output_shape"} & set(f.tags) else NEVER,
        formulas=formulas,
        source="derivatives",
    )
    return NativeForm(form, str(f.func.name), composite)


def formulas_of(info: DifferentiabilityInfo) -> Iterator[tuple[str, str]]:
    """Arguments with the formulas of their gradients, in the names of the native function."""
    for each in info.derivatives:
        for name in each.var_names:
            yield name, " ".join(each.original_formula.split())


class _Roles:
    """Names of a schema's arguments and results as roles of the form."""

    def __init__(self, f: NativeFunction, params: tuple[Param, ...], first: str) -> None:
        self.argument_names = [a.name for a in f.func.arguments.flat_non_out]
        self.tensors = {
            a.name for a in f.func.arguments.flat_non_out if _kind(a.type)[0] in (Kind.TENSOR, Kind.TENSORS)
        }
        # `deprecated.yaml` renames nothing that is a tensor, so names agree with the schema's but for `self`.
        known = {p.name for p in params}
        self._first = "self" if "self" in known else first
        returns = f.func.returns
        self.list_result = len(returns) == 1 and isinstance(returns[0].type, ListType)
        tensors = [r for r in returns if _kind(r.type)[0] in (Kind.TENSOR, Kind.TENSORS)]
        self.results: tuple[str, ...]
        if len(returns) <= 1:
            self.results = ("result",) if tensors else ()
        else:
            self.results = tuple(f"result{i}" for i in range(len(returns)))
        named = [r.name for r in returns]
        self.fields = tuple(str(n) for n in named) if len(named) > 1 and all(named) else ()
        self._results = dict(zip(cpp.return_names(f), self.results))

    def of(self, name: str) -> str:
        return self._first if name == "self" else name

    def result(self, name: str) -> str:
        return str(self._results.get(name, name))


def _saves(f: NativeFunction, info: Any, roles: _Roles) -> tuple[tuple[Saved, ...], Condition]:
    """What the node saves and under which guard, as torch's own generator decides it."""
    with_derivative = [n for n in roles.argument_names if any(n in d.var_names for d in info.derivatives)]
    lists = any(
        isinstance(a.type, ListType) and a.name in with_derivative for a in f.func.arguments.flat_non_out
    )
    inplace = f.func.kind() is SchemaKind.inplace
    saves: list[Saved] = []
    frees: list[Condition] = []
    for attribute in info.all_saved_inputs:
        name = _attribute_name(attribute)
        if name not in roles.tensors:
            continue
        guard = None if lists else _guard(attribute, name, info, with_derivative)
        condition: Condition = ALWAYS if guard is None else tuple(roles.of(g) for g in guard)
        frees.append(condition)
        if inplace and name == "self":
            continue  # the node keeps a copy made before the write
        saves.append(Saved(roles.of(name), condition))
    for attribute in info.all_saved_outputs:
        name = _attribute_name(attribute)
        role = roles.result("self" if inplace and name == "result" else name)
        if inplace:
            role = "result"
        if role not in roles.results:
            continue  # a scalar result
        frees.append(ALWAYS)
        saves.append(Saved(role, ALWAYS))
    return tuple(saves), _either(frees)


def _attribute_name(attribute: Any) -> str:
    name = attribute.nctype.name
    return str(getattr(name, "name", name))


def _guard(attribute: Any, name: str, info: Any, with_derivative: list[str]) -> list[str] | None:
    """Arguments any of which must require grad for the save to happen; None when it always does."""
    if "backward" in info.name or len(with_derivative) <= 1:
        return None
    if attribute.nctype.type not in (BaseCType(tensorT), OptionalCType(BaseCType(tensorT))):
        return None
    used_in = [d for d in info.derivatives if attribute in d.saved_inputs]
    if len(used_in) != 1:
        return None
    derivative = used_in[0]
    if len(derivative.var_names) == 1:
        # An optional tensor is never guarded by a single formula.
        return list(derivative.var_names) if attribute.nctype.type == BaseCType(tensorT) else None
    optional = re.search(rf"wrap_opt_if\({re.escape(name)},(.*?)\)", derivative.formula)
    if optional is None:
        return None
    return [with_derivative[int(i)] for i in re.findall(r"grad_input_mask\[(\d+)\]", optional.group(1))]


def _either(conditions: list[Condition]) -> Condition:
    clauses: list[str] = []
    for condition in conditions:
        if "*" in condition:
            return ALWAYS
        clauses.extend(c for c in condition if c not in clauses)
    return tuple(clauses)


def _aliases(f: NativeFunction, params: tuple[Param, ...], roles: _Roles) -> tuple[Alias, ...]:
    aliases: list[Alias] = []
    arguments = f.func.arguments.flat_non_out
    for index, returned in enumerate(f.func.returns):
        if returned.annotation is None or not roles.results:
            continue
        role = roles.results[min(index, len(roles.results) - 1)]
        for argument in arguments:
            if argument.annotation is None or argument.annotation.alias_set != returned.annotation.alias_set:
                continue
            if argument.annotation.is_write:
                aliases.append(Alias(role, roles.of(argument.name), AliasKind.SAME))
            else:
                aliases.append(Alias(role, roles.of(argument.name), AliasKind.VIEW, multi=roles.list_result))
    if len(roles.results) == 1 and any(p.name == "out" for p in params):
        aliases.append(Alias(roles.results[0], "out", AliasKind.SAME, ("out!=None",)))
    return tuple(aliases)


def _writes(f: NativeFunction, params: tuple[Param, ...], roles: _Roles) -> tuple[Write, ...]:
    writes = [
        Write(roles.of(a.name))
        for a in f.func.arguments.flat_non_out
        if a.annotation and a.annotation.is_write
    ]
    if any(p.name == "out" for p in params):
        writes.append(Write("out", ("out!=None",)))
    return tuple(writes)


def _number_form(native: NativeForm) -> NativeForm:
    """The same call with a Python number as second operand, which torch wraps into a tensor of its own."""
    form = native.form
    second = next((p for p in form.params[1:] if p.kind is Kind.TENSOR and p.name != "out"), None)
    if second is None:
        return native
    number = Param(second.name, Kind.NUMBER, second.default, second.keyword_only, second.optional)
    first = form.params[0].name
    saves = tuple(
        Saved(s.role, tuple(c for c in s.when if c != second.name), s.why)
        for s in form.saves
        if s.role != second.name
    )
    changed = Form(
        params=tuple(number if p is second else p for p in form.params),
        results=form.results,
        nodes=form.nodes,
        differentiable=tuple(r for r in form.differentiable if r != second.name),
        nondifferentiable=form.nondifferentiable,
        saves=tuple(s for s in saves if s.when),
        frees=tuple("*" if c == first else c for c in form.frees if c != second.name),
        aliases=form.aliases,
        writes=form.writes,
        formulas=tuple(pair for pair in form.formulas if pair[0] != second.name),
        source=form.source,
    )
    return NativeForm(changed, native.schema, native.composite)
