"""The row that what was seen of a callable amounts to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradguard.ops.conditions import arguments_in
from gradguard.ops.model import ALWAYS, NEVER, Alias, AliasKind, Condition, Form, Kind, Param, Saved, Write
from tools.optable import observe
from tools.optable.generate_native import NOT_IMPLEMENTED
from tools.optable.observe import Seen, tensors_in
from tools.optable.observe_bind import default_of
from tools.optable.observe_learn import GIVEN, Example, Facts, agrees, learn
from tools.optable.observe_watch import Watched


@dataclass(slots=True)
class Learned:
    """A form with its facts, and what does not fit."""

    forms: list[Form]
    disagreements: list[str] = field(default_factory=list)
    calls: int = 0
    refusals: list[str] = field(default_factory=list)


def learn_form(form: Form, watched: Sequence[Watched], *, native: bool, refusal: str = "") -> Learned:
    """The form with what was seen. `native` says that the form already holds what torch's generator says.

    `refusal` is what torch said to the samples, for a form that was never seen.
    """
    usable = [w for w in watched if w.seen]
    if not usable:
        reason = f"torch refuses every sample: {refusal.splitlines()[0][:110]}" if refusal else "no sample"
        return Learned([replace(form, unobserved=reason)])
    groups = _by_structure(form, usable)
    result = Learned([], calls=len(usable))
    for given, results, is_list, names, members in groups:
        shaped = replace(
            form, given=given, results=results, list_result=is_list, field_names=names or form.field_names
        )
        if len(results) < 2:
            shaped = replace(shaped, field_names=())
        result.forms.append(_facts(shaped, members, native and len(groups) == 1, result.disagreements))
    return result


def compared(form: Form) -> list[str]:
    """The arguments whose values the conditions of a form compare, for `observe_vary.crossed`."""
    conditions = [form.given, form.nodes, form.frees, form.reads]
    conditions += [s.when for s in form.saves] + [a.when for a in form.aliases]
    conditions += [w.when for w in form.writes]
    names = dict.fromkeys(name for when in conditions for name in arguments_in(when))
    return [name for name in names if name != "out" and not name.endswith((".ndim", ".dtype", ".others"))]


Structure = tuple[Condition, tuple[str, ...], bool, tuple[str, ...], list[Watched]]


def _by_structure(form: Form, watched: list[Watched]) -> list[Structure]:
    """Calls grouped by what comes back: one tensor, a tuple of some length, a list."""
    kinds: dict[tuple[tuple[str, ...], bool], list[Watched]] = {}
    for w in watched:
        kinds.setdefault((w.seen[0].results, w.seen[0].list_result), []).append(w)
    names = max((w.seen[0].field_names for w in watched), key=len)
    if form.list_result or _is_list(form, kinds, names):
        plain = kinds.pop((("result",), False), []) if not form.list_result else []
        many = [w for members in kinds.values() for w in members]
        for w in many:
            for seen in w.seen:
                _as_list(seen)
        kinds = {(("result",), True): many}
        if plain:
            kinds[("result",), False] = plain
        names = ()
    if len(kinds) == 1:
        (roles, is_list), members = next(iter(kinds.items()))
        return [(ALWAYS, roles, is_list, names, members)]
    out: list[Structure] = []
    for (roles, is_list), members in kinds.items():
        chosen = {id(w) for w in members}
        examples = [(arguments_only(form, w), id(w) in chosen) for w in watched]
        out.append((learn(examples), roles, is_list, members[0].seen[0].field_names, members))
    return out


def _is_list(
    form: Form, kinds: dict[tuple[tuple[str, ...], bool], list[Watched]], names: tuple[str, ...]
) -> bool:
    """Whether tuples come in lengths that follow sizes rather than flags, or hold the views of one tensor."""
    tuples = {roles: members for (roles, is_list), members in kinds.items() if roles and roles != ("result",)}
    if not tuples or names:
        return False
    if any(is_list for _, is_list in kinds):
        return True
    if any(a.multi for members in tuples.values() for w in members for s in w.seen for a in s.aliases):
        return True
    if len(tuples) == 1:
        return False
    for members in tuples.values():
        chosen = {id(w) for w in members}
        condition = learn([(_flags(form, w), id(w) in chosen) for ws in tuples.values() for w in ws])
        if any("?" in clause for clause in condition):
            return True
    return False


def _flags(form: Form, watched: Watched) -> Facts:
    """Only the arguments that are flags."""
    facts = arguments_only(form, watched)
    flags = {n: v for n, v in facts.arguments.items() if v is None or isinstance(v, bool)}
    return replace(facts, arguments=flags, ndims={}, kinds={}, contiguous={})


def _as_list(seen: Seen) -> None:
    def one(role: str) -> str:
        return "result" if role.startswith("result") else role

    seen.results, seen.list_result, seen.field_names = ("result",), True, ()
    seen.differentiable_results = frozenset(map(one, seen.differentiable_results))
    seen.saved = frozenset(map(one, seen.saved))
    seen.partly = frozenset(map(one, seen.partly))
    seen.aliases = tuple(
        {(one(a.result), a.of): replace(a, result=one(a.result)) for a in seen.aliases}.values()
    )
    seen.shapes = {(one(r), of): facts for (r, of), facts in seen.shapes.items()}
    seen.scattered = frozenset(map(one, seen.scattered))


def arguments_only(form: Form, watched: Watched) -> Facts:
    literals: dict[str, Any] = dict(watched.literals)
    for param in form.params:
        if param.name not in watched.values:
            literals[param.name] = default_of(param)
            continue
        value = watched.values[param.name]
        simple = value is None or isinstance(value, (bool, int, float, str))
        literals[param.name] = value if simple else GIVEN
    tensors = {
        n: v for n, v in watched.values.items() if isinstance(v, torch.Tensor) and not n.startswith("self.")
    }
    return Facts(
        frozenset(),
        literals,
        {n: t.ndim for n, t in tensors.items()},
        kinds={n: kind_of_numbers(t) for n, t in tensors.items()},
        dtypes={n: str(t.dtype).removeprefix("torch.") for n, t in tensors.items()},
        contiguous={n: t.layout != torch.strided or t.is_contiguous() for n, t in tensors.items()},
    )


def kind_of_numbers(tensor: torch.Tensor) -> str:
    """`float`, `complex`, `bool` or `int`."""
    if tensor.is_floating_point():
        return "float"
    if tensor.is_complex():
        return "complex"
    return "bool" if tensor.dtype == torch.bool else "int"


def facts_of(form: Form, watched: Watched, seen: Seen) -> Facts:
    return replace(arguments_only(form, watched), grads=seen.grads)


def _facts(form: Form, watched: list[Watched], native: bool, disagreements: list[str]) -> Form:
    every = [(w, s) for w in watched for s in w.seen]
    # A call without floating tensors or whose results are all integers says nothing about gradients.
    differentiable = tuple(
        r for r in _roles(form, watched) if any(s.grads == {r} and _new_node(s) for _, s in every)
    )
    recording = [
        (w, s) for w, s in every if s.grads & set(differentiable) and s.floating and not _handed_back(s)
    ]
    nodes = learn([(_known_elements(facts_of(form, w, s)), _new_node(s)) for w, s in recording])
    recorded = [(w, s) for w, s in every if _new_node(s)]
    never = tuple(
        role for role in form.results if not any(role in s.differentiable_results for _, s in every)
    )
    saved_roles = sorted({role for _, s in recorded for role in s.saved}, key=_role_order(form))
    saves: list[Saved] = []
    fixed = _of_one_length(form, watched)
    for role in saved_roles:
        if any(role in s.elements for _, s in recorded) and not role.startswith("result"):
            saves += _of_list(form, role, recorded, fixed)
            continue
        examples = [
            (_known_elements(facts_of(form, w, s), fixed), role in s.saved)
            for w, s in recorded
            if role.startswith("result") or any(True for _ in tensors_in(w.values.get(role)))
        ]
        condition = learn(examples)
        if any(role in s.partly for _, s in recorded):
            condition = tuple("?" if c == "*" else c if c.endswith("?") else f"{c} & ?" for c in condition)
        saves.append(Saved(role, condition))
    frees = (
        learn([(_known_elements(facts_of(form, w, s), fixed), s.frees) for w, s in recorded])
        if recorded
        else NEVER
    )
    seen_form = replace(
        form,
        nodes=nodes,
        differentiable=differentiable,
        nondifferentiable=never,
        saves=tuple(saves),
        frees=frees,
        aliases=_aliases(form, watched),
        scattered=tuple(r for r in form.results if any(r in s.scattered for _, s in every)),
        writes=_writes(form, watched),
        reads=learn([(arguments_only(form, w), w.reads) for w in watched]),
        formulas=form.formulas,
        source="observed",
    )
    if not native:
        return seen_form
    return _merge(form, seen_form, recorded, every, disagreements)


def _of_one_length(form: Form, watched: Sequence[Watched]) -> frozenset[str]:
    """Parameters that take a list of tensors of one length: its elements have roles of their own (`hx[0]`)."""
    found = set()
    for param in form.params:
        given = [w.values[param.name] for w in watched if w.values.get(param.name) is not None]
        lists = [
            v for v in given if isinstance(v, (list, tuple)) and all(isinstance(t, torch.Tensor) for t in v)
        ]
        if len(given) > 1 and len(lists) == len(given) and not param.variadic:
            lengths = {len(v) for v in lists}
            if len(lengths) == 1 and min(lengths) > 1:
                found.add(param.name)
    return frozenset(found)


def _known_elements(facts: Facts, fixed: frozenset[str] = frozenset()) -> Facts:
    """The facts without the elements of lists that come in any length."""
    kept = frozenset(g for g in facts.grads if "[" not in g or g.partition("[")[0] in fixed)
    return replace(facts, grads=kept)


def _of_list(
    form: Form, role: str, recorded: list[tuple[Watched, Seen]], fixed: frozenset[str]
) -> list[Saved]:
    """What is saved of a list of tensors: by element where it has one length, else by what the others require."""
    by_element: dict[int, list[Example]] = {}
    for w, s in recorded:
        flags = s.elements.get(role, (role in s.saved,))
        if not any(True for _ in tensors_in(w.values.get(role))):
            continue
        facts = facts_of(form, w, s)
        for index, saved in enumerate(flags):
            seen_from = facts if role in fixed else facts.seen_from(role, index, len(flags))
            by_element.setdefault(index, []).append((_known_elements(seen_from, fixed), saved))
    if role in fixed:
        conditions = {observe.element(role, i): learn(examples) for i, examples in by_element.items()}
    else:
        conditions = {role: learn([e for examples in by_element.values() for e in examples])}
    return [Saved(each, condition) for each, condition in conditions.items() if condition]


def _roles(form: Form, watched: Sequence[Watched]) -> list[str]:
    """Parameters of the form, then parameters and buffers of the module."""
    names = dict.fromkeys(p.name for p in form.params)
    names.update(dict.fromkeys(n for w in watched for n in w.values if n.startswith("self.")))
    return list(names)


def _new_node(seen: Seen) -> bool:
    """Whether the call itself recorded: not when it only handed back its argument."""
    if not seen.recorded:
        return False
    untouched = {a.result for a in seen.aliases if a.same and a.of not in seen.counted}
    return (
        bool(seen.differentiable_results - untouched) or not seen.results or not seen.differentiable_results
    )


def _handed_back(seen: Seen) -> bool:
    """All results are arguments that the call did not write: nothing happened to record."""
    untouched = {a.result for a in seen.aliases if a.same and a.of not in seen.counted}
    return bool(untouched) and untouched >= set(seen.results)


def _role_order(form: Form) -> Callable[[str], tuple[int, str]]:
    order = {p.name: i for i, p in enumerate(form.params)}
    return lambda role: (order.get(role, len(order)), role)


def _merge(
    told: Form,
    seen: Form,
    recorded: list[tuple[Watched, Seen]],
    every: list[tuple[Watched, Seen]],
    out: list[str],
) -> Form:
    """What the generator says where it agrees with what was seen; else what was seen, and a note of the difference."""
    merged = replace(seen, source="both")
    recorded_any = any(_new_node(s) for _, s in every)
    if not recorded_any and told.formulas and all(f == NOT_IMPLEMENTED for _, f in told.formulas):
        return replace(merged, formulas=())  # takes only tensors that cannot require grad
    if seen.differentiable != told.differentiable:
        if not set(seen.differentiable) <= set(told.differentiable):
            out.append(f"differentiable: told {told.differentiable}, seen {seen.differentiable}")
        elif told.nodes != NEVER:
            merged = replace(merged, differentiable=told.differentiable)
    if (told.nodes == NEVER) == recorded_any:
        out.append(f"records: told {bool(told.nodes)}, seen {not bool(told.nodes)}")
    if not recorded:
        # Nothing differentiable was tried; what the generator says is all there is.
        return replace(
            merged,
            saves=told.saves,
            frees=told.frees,
            nodes=told.nodes,
            nondifferentiable=told.nondifferentiable,
        )
    fine = True
    told_saves = {s.role: s for s in told.saves}
    for role in sorted({*told_saves, *(s.role for s in seen.saves)}):
        examples: list[Example] = [
            (facts_of(told, w, s), role in s.saved)
            for w, s in recorded
            if role.startswith("result") or any(True for _ in tensors_in(w.values.get(role)))
        ]
        condition = told_saves[role].when if role in told_saves else NEVER
        if not agrees(condition, examples):
            fine = False
            now = next((s.when for s in seen.saves if s.role == role), NEVER)
            out.append(f"saves {role}: told {condition}, seen {now}")
    if fine:
        merged = replace(merged, saves=told.saves)
    if agrees(told.frees, [(facts_of(told, w, s), s.frees) for w, s in recorded]):
        merged = replace(merged, frees=told.frees)
    else:
        out.append(f"frees: told {told.frees}, seen {seen.frees}")
    told_writes = {w.role for w in told.writes if w.role != "out"}
    if told_writes != {w.role for w in seen.writes if w.role != "out"}:
        out.append(f"writes: told {sorted(told_writes)}, seen {[w.role for w in seen.writes]}")
    return merged


def _aliases(form: Form, watched: Sequence[Watched]) -> tuple[Alias, ...]:
    found: dict[tuple[str, str], list[observe.SeenAlias]] = {}
    for w in watched:
        for s in w.seen:
            for alias in s.aliases:
                found.setdefault((alias.result, alias.of), []).append(alias)
    out = [a for a in form.aliases if a.of == "out"]
    for (role, of), aliases in found.items():
        same: list[Example] = []
        shared: list[Example] = []
        for w in watched:
            if not any(True for _ in tensors_in(w.values.get(of))):
                continue
            for s in w.seen:
                now = next((a for a in s.aliases if (a.result, a.of) == (role, of)), None)
                facts = replace(
                    facts_of(form, w, s), grads=frozenset(), alias=s.shapes.get((role, of), frozenset())
                )
                same.append((facts, now is not None and now.same))
                if now is None or not now.same:
                    shared.append((facts, now is not None))
        multi, expands = any(a.multi for a in aliases), any(a.expands for a in aliases)
        condition = learn(same)
        if condition:
            out.append(Alias(role, of, AliasKind.SAME, condition))
        condition = learn(shared)
        if condition:
            kind = AliasKind.VIEW if condition == ALWAYS else AliasKind.MAYBE
            out.append(Alias(role, of, kind, condition, multi, expands))
    return tuple(out)


def _writes(form: Form, watched: Sequence[Watched]) -> tuple[Write, ...]:
    out = [w for w in form.writes if w.role == "out"]
    for role in _roles(form, watched):
        for counted in (True, False):
            examples = [
                (
                    arguments_only(form, w),
                    any(role in (s.counted if counted else s.uncounted) for s in w.seen),
                )
                for w in watched
                if any(True for _ in tensors_in(w.values.get(role)))
            ]
            condition = learn(examples)
            if condition:
                out.append(Write(role, condition, counted))
    return tuple(sorted(out, key=lambda w: w.role == "out"))


def refine(params: tuple[Param, ...], watched: Sequence[Watched]) -> tuple[Param, ...]:
    """Kinds that the signature leaves open, narrowed to what every call passed."""
    out = []
    for param in params:
        values = [w.values[param.name] for w in watched if w.values.get(param.name) is not None]
        kind = param.kind
        if kind is Kind.TENSOR and not all(isinstance(v, torch.Tensor) for v in values):
            kind = Kind.ANY
        if kind is Kind.ANY and values and all(isinstance(v, torch.Tensor) for v in values):
            kind = Kind.TENSOR
        out.append(replace(param, kind=kind))
    return tuple(out)
