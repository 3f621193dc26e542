"""Rows as compact JSON values and back.

Fields that hold their default are left out. A parameter is one text, `name:kind`, followed by `?` when it may be
None, `...` when its values may be given one by one, and `=default`; the text `*` stands before the first
keyword-only parameter. Why a tensor is saved is left out where a formula of the form says it. A condition is a list of clauses, or absent when it is the default of its field.
"""

from __future__ import annotations

import re
from typing import Any

from gradguard.ops.model import (
    ALWAYS,
    NEVER,
    Alias,
    AliasKind,
    Call,
    Condition,
    Form,
    Kind,
    ModuleRow,
    Param,
    Saved,
    Write,
)

Json = dict[str, Any]

_PARAM = re.compile(
    r"(?P<name>\w+):(?P<kind>[a-z]+)(?P<optional>\?)?(?P<variadic>\.\.\.)?(?:=(?P<default>.*))?", re.DOTALL
)


def encode_params(params: tuple[Param, ...]) -> list[str]:
    out: list[str] = []
    keyword = False
    for p in params:
        if p.keyword_only and not keyword:
            out.append("*")
            keyword = True
        default = "" if p.default is None else f"={p.default}"
        out.append(
            f"{p.name}:{p.kind.value}{'?' if p.optional else ''}{'...' if p.variadic else ''}{default}"
        )
    return out


def decode_params(texts: list[str]) -> tuple[Param, ...]:
    """Raises ValueError naming the text that is no parameter."""
    params: list[Param] = []
    keyword = False
    for text in texts:
        if text == "*":
            keyword = True
            continue
        m = _PARAM.fullmatch(text)
        if m is None:
            raise ValueError(f"not a parameter: {text!r}")
        params.append(
            Param(
                m["name"],
                Kind(m["kind"]),
                m["default"],
                keyword,
                m["optional"] is not None,
                m["variadic"] is not None,
            )
        )
    return tuple(params)


def encode_form(form: Form) -> Json:
    row: Json = {"params": encode_params(form.params)}
    if form.given != ALWAYS:
        row["given"] = list(form.given)
    if form.results != ("result",):
        row["results"] = list(form.results)
    if form.field_names:
        row["fields"] = list(form.field_names)
    if form.list_result:
        row["list"] = True
    if form.nodes != ALWAYS:
        row["nodes"] = list(form.nodes)
    if form.differentiable:
        row["diff"] = list(form.differentiable)
    if form.reaches != ALWAYS:
        row["reaches"] = list(form.reaches)
    if form.nondifferentiable:
        row["nondiff"] = list(form.nondifferentiable)
    if form.saves:
        row["saves"] = [_encode_saved(s, form) for s in form.saves]
    if form.frees:
        row["frees"] = list(form.frees)
    if form.aliases:
        row["aliases"] = [_encode_alias(a) for a in form.aliases]
    if form.scattered:
        row["scattered"] = list(form.scattered)
    if form.writes:
        row["writes"] = [
            [w.role, list(w.when)] if w.counted else [w.role, list(w.when), "uncounted"] for w in form.writes
        ]
    if form.reads:
        row["reads"] = list(form.reads)
    if form.formulas:
        row["formulas"] = _encode_formulas(form.formulas)
    if form.source:
        row["source"] = form.source
    if form.unobserved:
        row["unobserved"] = form.unobserved
    return row


def _encode_saved(saved: Saved, form: Form) -> list[Any]:
    reason = (
        [saved.why] if saved.why and saved.why != _why(saved.role, form.field_names, form.formulas) else []
    )
    return [saved.role, list(saved.when), *reason]


def _encode_formulas(formulas: tuple[tuple[str, str], ...]) -> Json:
    """Arguments that share one formula share one entry."""
    together: dict[str, list[str]] = {}
    for role, text in formulas:
        together.setdefault(text, []).append(role)
    return {",".join(roles): text for text, roles in together.items()}


def _why(role: str, fields: tuple[str, ...], formulas: tuple[tuple[str, str], ...]) -> str:
    """The first formula that mentions the role, by its own name or by the name of the result field."""
    words = [role]
    if role.startswith("result") and role[6:].isdigit() and int(role[6:]) < len(fields):
        words.append(fields[int(role[6:])])
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(w)}(?!\w)" for w in words))
    return next((" ".join(text.split()) for _, text in formulas if pattern.search(text)), "")


def _encode_alias(alias: Alias) -> list[Any]:
    out: list[Any] = [alias.result, alias.of, alias.kind.value, list(alias.when)]
    if alias.multi:
        out.append("multi")
    if alias.expands:
        out.append("expands")
    return out


def _condition(value: Any, default: Condition) -> Condition:
    return default if value is None else tuple(value)


def decode_form(row: Json) -> Form:
    """Raises ValueError, KeyError or IndexError on a value that no form encodes to."""
    fields = tuple(row.get("fields", ()))
    formulas = tuple(
        (role, text) for roles, text in row.get("formulas", {}).items() for role in roles.split(",")
    )
    return Form(
        params=decode_params(row["params"]),
        given=_condition(row.get("given"), ALWAYS),
        results=tuple(row.get("results", ("result",))),
        field_names=fields,
        list_result=row.get("list", False),
        nodes=_condition(row.get("nodes"), ALWAYS),
        differentiable=tuple(row.get("diff", ())),
        reaches=_condition(row.get("reaches"), ALWAYS),
        nondifferentiable=tuple(row.get("nondiff", ())),
        saves=tuple(
            Saved(s[0], tuple(s[1]), s[2] if len(s) > 2 else _why(s[0], fields, formulas))
            for s in row.get("saves", ())
        ),
        frees=_condition(row.get("frees"), NEVER),
        aliases=tuple(
            Alias(a[0], a[1], AliasKind(a[2]), tuple(a[3]), "multi" in a[4:], "expands" in a[4:])
            for a in row.get("aliases", ())
        ),
        scattered=tuple(row.get("scattered", ())),
        writes=tuple(Write(w[0], tuple(w[1]), "uncounted" not in w[2:]) for w in row.get("writes", ())),
        reads=_condition(row.get("reads"), NEVER),
        formulas=formulas,
        source=row.get("source", ""),
        unobserved=row.get("unobserved", ""),
    )


def encode_call(call: Call) -> Json | list[str]:
    """The arguments alone, where the rest is as in most calls."""
    row: Json = {"args": list(call.arguments)}
    if call.build:
        row["build"] = list(call.build)
    if call.form:
        row["form"] = call.form
    if call.loss != Call(()).loss:
        row["loss"] = call.loss
    if call.attribute:
        row["attribute"] = True
    return row if len(row) > 1 else list(call.arguments)


def decode_call(row: Json | list[str] | None) -> Call | None:
    """Raises KeyError on a value that no call encodes to."""
    if row is None or isinstance(row, list):
        return None if row is None else Call(tuple(row))
    return Call(
        tuple(row["args"]),
        tuple(row.get("build", ())),
        row.get("form", 0),
        row.get("loss", Call(()).loss),
        row.get("attribute", False),
    )


def encode_module(module: ModuleRow) -> Json:
    row: Json = {"module": module.name, "init": encode_params(module.init)}
    if module.absent:
        row["absent"] = list(module.absent)
    if module.parameters:
        row["parameters"] = [[n, list(c)] for n, c in module.parameters]
    if module.buffers:
        row["buffers"] = [[n, list(c)] for n, c in module.buffers]
    if module.forms:
        row["forms"] = [encode_form(f) for f in module.forms]
    if module.container:
        row["container"] = True
    if module.since != "2.0":
        row["since"] = module.since
    if module.extra:
        row["extra"] = dict(module.extra)
    if module.example is not None:
        row["example"] = encode_call(module.example)
    return row


def decode_module(row: Json) -> ModuleRow:
    """Raises ValueError, KeyError or IndexError on a value that no row encodes to."""
    return ModuleRow(
        name=row["module"],
        init=decode_params(row["init"]),
        absent=tuple(row.get("absent", ())),
        parameters=tuple((n, tuple(c)) for n, c in row.get("parameters", ())),
        buffers=tuple((n, tuple(c)) for n, c in row.get("buffers", ())),
        forms=tuple(decode_form(f) for f in row.get("forms", ())),
        container=row.get("container", False),
        since=row.get("since", "2.0"),
        extra=tuple(row.get("extra", {}).items()),
        example=decode_call(row.get("example")),
    )
