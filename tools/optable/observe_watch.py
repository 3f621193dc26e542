"""One public callable, called in many ways and watched."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradguard.ops.model import Form
from tools.optable import observe, observe_extra, observe_samples, observe_vary
from tools.optable.observe import Refused, Seen, can_require_grad, tensors_in
from tools.optable.observe_bind import bind, caller

CALLS_A_FORM = 40
VARIED_CALLS = 4
VARIATIONS = 40
CROSSED_CALLS = 3
SUBSETS = 8
A_LIST = 4
"""Elements of the longest list whose tensors are asked about one by one."""
MANY_ROLES = 12
"""With more roles than that, only the first are tried alone."""


@dataclass(slots=True)
class Watched:
    """One way of calling, with what was seen for each set of roles that require grad."""

    values: dict[str, Any]
    seen: list[Seen] = field(default_factory=list)
    reads: bool = False
    literals: dict[str, Any] = field(default_factory=dict)
    """Further literal facts by name: the attributes of a module."""


def watch(
    function: Callable[..., Any],
    forms: Sequence[Form],
    name: str,
    told: Sequence[bool],
    *,
    strict: bool = True,
) -> tuple[list[list[Watched]], list[str]]:
    """Calls of each form, in the order of the forms, and what torch said last to the refused ones.

    A form that is `told` by torch's generator has no conditions to learn: its samples are not varied. A Python
    function does not look at the types of its arguments as torch's parser does: then `strict` is false.
    """
    by_form: list[list[dict[str, Any]]] = [[] for _ in forms]
    observe_samples.seed(0)
    known = observe_extra.samples(name)
    kept: list[int] = [0 for _ in forms]
    for number, (args, kwargs) in enumerate([*known, *observe_samples.samples(name, CALLS_A_FORM * 2)]):
        for index, form in enumerate(forms):
            values = bind(form, args, kwargs, strict=strict)
            if values is not None:
                by_form[index].append(values)
                kept[index] += number < len(known)
                break
    watched: list[list[Watched]] = []
    refused: list[str] = []
    for form, calls, first, known_already in zip(forms, by_form, kept, told):
        chosen = calls[:first] + _spread(calls[first:], CALLS_A_FORM)
        refusals: list[str] = []
        varied = name not in observe_vary.UNSAFE and not known_already
        watched.append(_watch_form(function, form, chosen, refusals, varied=varied))
        refused.append(refusals[0] if refusals else "")
    return watched, refused


def _watch_form(
    function: Callable[..., Any],
    form: Form,
    calls: list[dict[str, Any]],
    refusals: list[str],
    *,
    varied: bool,
) -> list[Watched]:
    out: list[Watched] = []
    call = caller(function, form)

    def attempt(values: dict[str, Any], like: Watched | None = None) -> None:
        try:
            out.append(watch_scene(observe.scene_of(call, values), values, like=like))
        except Refused as refusal:
            refusals.append(str(refusal))

    for values in calls:
        attempt(values)
    if len(out) < 3:
        observe_samples.seed(0)
        for values in observe_samples.plain(form):
            attempt(values)
            if len(out) >= 6:
                break
    if varied:
        seen = observe_vary.pool(form, [w.values for w in out])
        for watched in different(out, VARIED_CALLS):
            recorded = any(s.recorded or s.aliases for s in watched.seen)
            changed = observe_vary.one_at_a_time(form, watched.values, seen, shapes=recorded)
            for values in itertools.islice(changed, VARIATIONS):
                attempt(values, watched)
    handed_back = any(a.same and a.of not in s.counted for w in out for s in w.seen for a in s.aliases)
    for watched in out[:4] if handed_back else ():
        for dtype in (torch.float64, torch.int64):
            attempt(observe_vary.recast(watched.values, dtype))
    required = [p for p in form.params if p.default is None]
    if len(required) == 1 and any(
        "same_dtype" not in facts for w in out for s in w.seen for facts in s.shapes.values()
    ):
        for dtype in observe_vary.DTYPES:  # a conversion may hand back what has the wanted dtype already
            attempt(observe_vary.recast(out[0].values, dtype))
    return out


def watch_crossed(
    function: Callable[..., Any], form: Form, names: Sequence[str], watched: Sequence[Watched]
) -> list[Watched]:
    """Combinations of the named arguments, on calls that were watched."""
    out: list[Watched] = []
    call = caller(function, form)
    seen = observe_vary.pool(form, [w.values for w in watched])
    chooser = random.Random(0)
    for base in different(watched, CROSSED_CALLS):
        for values in observe_vary.crossed(form, names, base.values, seen, chooser):
            try:
                out.append(watch_scene(observe.scene_of(call, values), values, like=base))
            except Refused:
                continue
    return out


def different(watched: Sequence[Watched], count: int) -> list[Watched]:
    """That many calls, first those that did something that none before did."""
    first: dict[object, Watched] = {}
    for w in watched:
        first.setdefault(tuple(_signature(s) for s in w.seen), w)
    chosen = list(first.values())[:count]
    others = [w for w in watched if not any(w is c for c in chosen)]
    return chosen + others[: count - len(chosen)]


def _signature(seen: Seen) -> object:
    return (
        seen.grads,
        seen.results,
        seen.recorded,
        seen.saved,
        seen.partly,
        seen.frees,
        seen.differentiable_results,
        tuple((a.result, a.of, a.same, a.multi, a.expands) for a in seen.aliases),
        seen.counted,
        seen.uncounted,
        seen.scattered,
    )


def _spread(calls: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    if len(calls) <= limit:
        return calls
    step = len(calls) / limit
    return [calls[int(i * step)] for i in range(limit)]


def watch_scene(
    scene: observe.Scene, values: dict[str, Any], *, turn: int = 0, like: Watched | None = None
) -> Watched:
    """Runs the scene with sets of roles requiring grad. Raises Refused when torch refuses it.

    With few roles these are all that `subsets` gives; with many they are chosen at random, by `turn`. A call that
    does the same as the call `like` with everything requiring grad is not asked about the other sets.
    """
    roles = [n for n, v in values.items() if any(can_require_grad(t) for t in tensors_in(v))]
    watched = Watched(values)
    if like is not None and _is_like(scene, watched, like):
        watched.reads = observe.reads_back(scene)
        return watched
    watched.seen.append(observe.observe(scene, frozenset()))
    chooser = random.Random(turn)
    many = len(roles) > MANY_ROLES
    able = []
    for role in chooser.sample(roles, MANY_ROLES // 2) if many else roles:
        try:
            watched.seen.append(observe.observe(scene, frozenset((role,))))
        except Refused:
            continue  # torch does not differentiate with respect to this argument
        able.append(role)
    mixtures = list(subsets(able))
    if many:
        members = frozenset(r for r in roles if r.startswith("self."))
        mixtures = [frozenset(roles) - members, members, frozenset(roles)]
        mixtures += [
            frozenset(r for r in roles if chooser.random() < share) for share in (0.1, 0.4) for _ in range(6)
        ]
    for grads in mixtures:
        if len(grads) > 1:
            watched.seen.append(observe.observe(scene, grads))
    for role in able if not many else ():
        for some in elements(role, values[role]):
            for beside in dict.fromkeys((frozenset((role,)), frozenset(able))):
                watched.seen.append(observe.observe(scene, beside | some))
    watched.reads = observe.reads_back(scene)
    return watched


def _is_like(scene: observe.Scene, watched: Watched, like: Watched) -> bool:
    """Whether the call does what another did, asked about the largest set of roles of that one."""
    most = max(like.seen, key=lambda s: -1 if any("[" in g for g in s.grads) else len(s.grads))
    if not most.grads or any(s.uncounted for s in like.seen):
        return False
    try:
        watched.seen.append(observe.observe(scene, most.grads))
    except Refused:
        return False  # perhaps only with fewer of them requiring grad
    if _signature(watched.seen[0]) == _signature(most):
        return True
    watched.seen.clear()
    return False


def elements(role: str, value: Any) -> Iterator[frozenset[str]]:
    """Some of the tensors of a list, but not all: each alone, and all but one."""
    able = [observe.element(role, i) for i, t in enumerate(tensors_in(value)) if can_require_grad(t)]
    if 1 < len(able) <= A_LIST:
        chosen = [frozenset((one,)) for one in able] + [frozenset(able) - {one} for one in able]
        yield from dict.fromkeys(chosen)


def subsets(roles: Sequence[str]) -> Iterator[frozenset[str]]:
    """Who requires grad: nobody, each alone, all, and every mixture while there are few."""
    yield frozenset()
    yield frozenset(roles)
    yield from (frozenset((role,)) for role in roles if len(roles) > 1)
    mixtures = itertools.chain.from_iterable(
        itertools.combinations(roles, size) for size in range(2, len(roles))
    )
    yield from (frozenset(m) for m in itertools.islice(mixtures, SUBSETS))
