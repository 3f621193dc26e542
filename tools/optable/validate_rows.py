"""Checks rows against live torch, in the way a user meets what they say: write, run backward, see.

Nothing here uses the hooks that the rows were learned with.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradguard.ops.conditions import holds
from gradguard.ops.model import AliasKind, Form, ModuleRow, Op
from tools.optable import observe_extra, observe_modules, observe_samples, observe_vary
from tools.optable.observe import (
    Refused,
    Scene,
    alias_facts,
    can_require_grad,
    element,
    replace_tensors,
    result_roles,
    scattered,
    scene_of,
    tensors_in,
)
from tools.optable.observe_bind import bind, caller
from tools.optable.observe_learn import Facts
from tools.optable.observe_real import second_backward_raises, write_breaks_backward
from tools.optable.observe_rows import arguments_only, compared
from tools.optable.observe_watch import Watched, elements

POOLED = 40
"""Calls that the values of an argument are gathered from."""
CROSSED_CALLS = 2
COMBINATIONS = 12


@dataclass(slots=True)
class Verdict:
    """What came of checking one row."""

    name: str
    claims: int = 0
    """Statements of the row that torch confirmed."""
    wrong: list[str] = field(default_factory=list)
    why_not: str = ""
    """Why nothing could be checked."""


def check_op(op: Op, function: Any, chooser: random.Random, calls: int) -> Verdict:
    """Checks an op on calls chosen at random, with random roles requiring grad."""
    verdict = Verdict(op.name)
    if all(f.unobserved for f in op.forms):
        verdict.why_not = op.forms[0].unobserved
        return verdict
    observe_samples.seed(chooser.randrange(2**31))
    tried = 0
    for form, values in _calls(op, chooser):
        if tried >= calls:
            break
        scene = scene_of(caller(function, form), values)
        facts = facts_of(form, values)
        tried += check_call(form, scene, facts, values, chooser, verdict)
        if tried % 2 and form.aliases:
            moved = {n: replace_tensors(v, observe_vary.noncontiguous) for n, v in values.items()}
            with contextlib.suppress(Refused):
                scene = scene_of(caller(function, form), moved)
                _check_forward(form, scene, facts_of(form, moved), verdict)
    for form, values in _crossed(op, chooser) if op.name not in observe_vary.UNSAFE else ():
        check_call(
            form, scene_of(caller(function, form), values), facts_of(form, values), values, chooser, verdict
        )
    if tried == 0 and not verdict.wrong:
        verdict.why_not = "torch refused every sample"
    return verdict


def facts_of(form: Form, values: dict[str, Any]) -> Facts:
    """What conditions ask of a call."""
    return _with_sizes(arguments_only(form, Watched(values)), values)


def _with_sizes(facts: Facts, values: dict[str, Any]) -> Facts:
    """`(1, 1)` for a size says what `1` says."""
    sizes = {
        name: value[0]
        for name, value in values.items()
        if isinstance(value, tuple) and value and all(type(v) is int and v == value[0] for v in value)
    }
    return replace(facts, arguments={**facts.arguments, **sizes}) if sizes else facts


def _crossed(op: Op, chooser: random.Random) -> Iterator[tuple[Form, dict[str, Any]]]:
    """A few calls of each form with one argument changed, and combinations of those that its conditions compare."""
    calls: dict[Form, list[dict[str, Any]]] = {}
    for form, values in itertools.islice(_calls(op, chooser), POOLED):
        calls.setdefault(form, []).append(values)
    for form, known in calls.items():
        pool = observe_vary.pool(form, known)
        for base in known[:CROSSED_CALLS]:
            varied = list(observe_vary.one_at_a_time(form, base, pool))
            combined = observe_vary.crossed(form, compared(form), base, pool, chooser)
            for values in [
                *chooser.sample(varied, min(len(varied), COMBINATIONS)),
                *itertools.islice(combined, COMBINATIONS),
            ]:
                if holds(form.given, facts_of(form, values).lookup):
                    yield form, values


def _calls(op: Op, chooser: random.Random) -> Iterator[tuple[Form, dict[str, Any]]]:
    pairs = [*observe_extra.samples(op.name), *observe_samples.samples(op.name, 24)]
    chooser.shuffle(pairs)
    for args, kwargs in pairs:
        for form in op.forms:
            values = bind(form, args, kwargs, strict=len(op.forms) > 1)
            if values is not None and holds(form.given, facts_of(form, values).lookup):
                yield form, values
                break
    for form in op.forms:
        for values in observe_samples.plain(form):
            if holds(form.given, facts_of(form, values).lookup):
                yield form, values


def check_module(row: ModuleRow, chooser: random.Random, calls: int) -> Verdict:
    """Checks a class on builds chosen at random."""
    verdict = Verdict(row.name)
    if row.container or not row.forms:
        verdict.why_not = (
            "a container does what its children do"
            if row.container
            else dict(row.extra).get("unobserved", "")
        )
        return verdict
    cls = observe_modules.classes()[row.name]
    builds = list(observe_modules.builds(cls, row.init))
    chooser.shuffle(builds)
    tried = 0
    for build in builds:
        if tried >= calls:
            break
        tried += _check_build(row, cls, build, chooser, verdict)
    asked = [name for form in row.forms for name in compared(form)]
    for build in itertools.islice(builds, CROSSED_CALLS):
        for other in itertools.islice(
            observe_modules.crossed(row.init, asked, build, builds, chooser), COMBINATIONS
        ):
            _check_build(row, cls, other, chooser, verdict)
    if tried == 0 and not verdict.wrong:
        verdict.why_not = "torch refused every sample"
    return verdict


def _check_build(
    row: ModuleRow,
    cls: type[torch.nn.Module],
    build: observe_modules.Built,
    chooser: random.Random,
    verdict: Verdict,
) -> bool:
    for form in row.forms:
        values = bind(form, build.inputs, build.named_inputs, strict=False)
        if values is None:
            continue
        try:
            module = observe_modules.construct(cls, build)
        except Exception:
            return False
        everything = {**values, **observe_modules.members(module)}
        attributes = observe_modules.attributes(module)
        facts = _with_sizes(arguments_only(form, Watched(everything, literals=attributes)), attributes)
        if holds(form.given, facts.lookup):
            scene = observe_modules.scene(cls, build, form, values)
            return check_call(form, scene, facts, everything, chooser, verdict)
    return False


def check_call(
    form: Form, scene: Scene, facts: Facts, values: dict[str, Any], chooser: random.Random, verdict: Verdict
) -> bool:
    """Checks every claim of the form on one call; False when torch refuses the call."""
    able = [n for n, v in values.items() if any(can_require_grad(t) for t in tensors_in(v))]
    grads = frozenset(r for r in able if chooser.random() < 0.6) & frozenset(form.differentiable)
    for role in sorted(grads):
        if chooser.random() < 0.6:
            grads |= chooser.choice([frozenset[str](), *elements(role, values[role])])
    try:
        _check_forward(form, scene, replace(facts, grads=grads), verdict)
        if grads:
            _check_backward(form, scene, replace(facts, grads=grads), values, verdict)
    except Refused:
        return False
    return True


def _claim(verdict: Verdict, told: bool | None, seen: bool | None, what: str, facts: Facts) -> None:
    if told is None or seen is None:
        return
    if told == seen:
        verdict.claims += 1
        return
    given = {k: v for k, v in facts.arguments.items() if v is not None}
    verdict.wrong.append(
        f"{what}: row says {told}, torch {seen} (grad: {sorted(facts.grads)}, {given})"[:300]
    )


def _check_forward(form: Form, scene: Scene, facts: Facts, verdict: Verdict) -> None:
    torch.default_generator.manual_seed(0)
    call, values = scene(facts.grads)
    held = [(n, t) for n, v in values.items() for t in tensors_in(v)]
    before = {id(t): (t._version, t.detach().clone()) for _, t in held}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = call()
        except Exception as error:
            raise Refused(str(error)) from error
    results, roles, is_list, _ = result_roles(out)
    if form.list_result:
        results, roles, is_list = [("result", t) for _, t in results], ("result",), True
    _claim(
        verdict, True, roles == form.results and is_list == form.list_result, f"results {form.results}", facts
    )
    for role in scattered([t for _, t in held], results):
        _claim(verdict, role in form.scattered, True, f"{role} may not be contiguous", facts)
    for role in form.nondifferentiable:
        _claim(
            verdict,
            False,
            any(t.requires_grad for r, t in results if r == role),
            f"{role} requires grad",
            facts,
        )
    for name in dict.fromkeys(n for n, _ in held):
        told = [w.counted for w in form.writes if w.role == name and holds(w.when, facts.lookup)]
        unsure = any(w.role == name and holds(w.when, facts.lookup) is None for w in form.writes)
        seen = any(t._version != before[id(t)][0] for n, t in held if n == name)
        _claim(verdict, None if unsure else any(told), seen, f"counted write of {name}", facts)
    _check_aliases(form, results, held, facts, verdict)


def _check_aliases(
    form: Form,
    results: Sequence[tuple[str, torch.Tensor]],
    held: Sequence[tuple[str, torch.Tensor]],
    facts: Facts,
    verdict: Verdict,
) -> None:
    """Of a role that holds several tensors the claim is true when it is of one of them."""
    same: dict[tuple[str, str], list[tuple[bool | None, bool]]] = {}
    shared: dict[tuple[str, str], list[tuple[bool | None, bool]]] = {}
    for role, result in results:
        for name, argument in held:
            if not argument.numel() or argument.layout != torch.strided or result.layout != torch.strided:
                continue
            known = replace(facts, grads=frozenset(), alias=alias_facts(argument, result))
            mine = [a for a in form.aliases if a.result == role and a.of == name]
            told = _any([holds(a.when, known.lookup) for a in mine if a.kind is AliasKind.SAME])
            same.setdefault((role, name), []).append((told, result is argument))
            if result is not argument:
                told = _any([holds(a.when, known.lookup) for a in mine if a.kind is not AliasKind.SAME])
                place = result.untyped_storage().data_ptr()
                seen = place != 0 and place == argument.untyped_storage().data_ptr()
                shared.setdefault((role, name), []).append((told, seen))
    for what, found in (("is", same), ("shares memory with", shared)):
        for (role, name), pairs in found.items():
            if len(pairs) > 1 and what != "is" and any(seen for _, seen in same[role, name]):
                continue
            _claim(
                verdict, _any([t for t, _ in pairs]), any(s for _, s in pairs), f"{role} {what} {name}", facts
            )


def _any(truths: Sequence[bool | None]) -> bool | None:
    if any(truths):
        return True
    return None if None in truths else False


def _check_backward(form: Form, scene: Scene, facts: Facts, values: dict[str, Any], verdict: Verdict) -> None:
    saves = {s.role: s.when for s in form.saves}
    argument_roles = [n for n, v in values.items() if any(True for _ in tensors_in(v))]
    written = {w.role for w in form.writes}
    for role in dict.fromkeys([*argument_roles, *form.results]):
        if role in written or (form.list_result and role == "result"):
            continue  # written by the call itself: its fate is told of the result
        if any(a.of == role and a.kind is AliasKind.SAME for a in form.aliases):
            continue
        if (
            any(a.result == role and holds(a.when, facts.lookup) is not False for a in form.aliases)
            and not written
        ):
            continue  # a view: writing it writes the argument
        views = [a.result for a in form.aliases if a.of == role]
        if any(v in saves for v in views):
            continue
        count = len(list(tensors_in(values.get(role))))
        for index in range(count) if count > 1 else ():
            one = element(role, index)
            told = holds(saves.get(one, saves.get(role, ())), facts.seen_from(role, index, count).lookup)
            with contextlib.suppress(LookupError):
                _claim(verdict, told, write_breaks_backward(scene, facts.grads, one), f"saves {one}", facts)
        if count > 1:
            continue
        told = holds(saves.get(role, ()), facts.lookup)
        with contextlib.suppress(LookupError):
            seen = write_breaks_backward(scene, facts.grads, role)
            _claim(verdict, told, seen, f"saves {role}", facts)
    try:
        seen = second_backward_raises(scene, facts.grads)
    except LookupError:
        return
    _claim(verdict, holds(form.frees, facts.lookup), seen, "frees what it needs", facts)
