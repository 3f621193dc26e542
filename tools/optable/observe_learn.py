"""From watched calls to conditions: the shortest text of the condition language that fits every call.

An example is the set of atoms that were true and the outcome. The search widens step by step, so that a fact which
who-requires-grad explains is never told in terms of sizes: first which roles require grad, then argument values,
what the tensors hold and how they lie in memory, then numbers of dimensions. Where equal atoms led to different outcomes the clause ends in `?`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradguard.ops.conditions import Atom, holds
from gradguard.ops.model import ALWAYS, NEVER, Condition


@dataclass(frozen=True, slots=True)
class Facts:
    """What was true of one call."""

    grads: frozenset[str]
    arguments: Mapping[str, Any]
    """Literal values by parameter name; `GIVEN` for what is no literal."""
    ndims: Mapping[str, int]
    alias: frozenset[str] = frozenset()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What the tensor of each role holds: `float`, `complex`, `int`, `bool`."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    contiguous: Mapping[str, bool] = field(default_factory=dict)

    others: Mapping[str, str] = field(default_factory=dict)
    """Asked of one tensor of a list: how many of the others require grad, `all`, `some` or `none`."""

    def lookup(self, atom: Atom) -> bool | None:
        if atom.relation == "!":
            return not self.requires_grad(atom.name)
        if not atom.relation:
            return self.requires_grad(atom.name) or atom.name in self.alias
        role, _, fact = atom.name.rpartition(".")
        of: Mapping[str, Any] | None = {
            "ndim": self.ndims,
            "kind": self.kinds,
            "dtype": self.dtypes,
            "contiguous": self.contiguous,
            "others": self.others,
        }.get(fact if role else "")
        value = self.arguments.get(atom.name) if of is None else of.get(role)
        equal = type(value) is type(atom.value) and value == atom.value
        if isinstance(value, (int, float)) and isinstance(atom.value, (int, float)):
            equal = value == atom.value and isinstance(value, bool) == isinstance(atom.value, bool)
        return equal if atom.relation == "=" else not equal

    def requires_grad(self, role: str) -> bool:
        """Whether the role, one of its tensors, or the tensor named as `hx[0]` requires grad."""
        whole = role.partition("[")[0]
        if role in self.grads or role == whole:
            return role in self.grads
        return whole in self.grads and not any(g.startswith(f"{whole}[") for g in self.grads)

    def seen_from(self, role: str, index: int, count: int) -> Facts:
        """The same call, asked about one of the tensors of a list."""
        needs = [self.requires_grad(f"{role}[{i}]") for i in range(count) if i != index]
        found = "none" if not any(needs) else "all" if all(needs) else "some"
        return replace(self, others={role: found})


class Given:
    """Stands for an argument that was given and is no literal."""

    def __repr__(self) -> str:
        return "GIVEN"


GIVEN = Given()

Example = tuple[Facts, bool]

LEVELS = 5
VALUES = 2
"""The last level of what the arguments say by themselves."""
MAX_CLAUSE = 3
MAX_CLAUSES = 4
MOST_CLAUSES = 20
"""More clauses than `MAX_CLAUSES` are readable only when each is a single fact: any of these roles."""
MAX_ATOMS = 40
MAX_UNSURE = 2
"""Of a clause that decides nothing: what it leaves out is said to be false, so a long one says too much."""
FEW = 4
"""Calls that a clause must be seen in, where some calls remain undecided."""
NUMBERS = (-2, -1, 0, 1, 2)
"""Numbers that mean something to torch; others stand for any number, and say nothing of their neighbours."""


def learn(examples: Sequence[Example]) -> Condition:
    """A condition that is true of exactly the calls with outcome True, as far as the language can tell."""
    if not any(outcome for _, outcome in examples):
        return NEVER
    if all(outcome for _, outcome in examples):
        return ALWAYS
    best: tuple[int, Condition] | None = None
    for level in range(LEVELS):
        texts = _atoms([f for f, _ in examples], level)
        undecided, condition = _fit(examples, texts)
        if undecided == 0:
            return condition
        # A longer text must explain much more to be worth reading, a short one about arguments only something.
        short = level <= VALUES and len(condition) <= 2
        if best is None or undecided < best[0] * (0.95 if short else 0.85):
            best = (undecided, condition)
    return best[1] if best is not None else ("?",)


def agrees(condition: Condition, examples: Iterable[Example]) -> bool:
    """Whether the condition never says the opposite of what was seen."""
    return all(holds(condition, facts.lookup) in (None, outcome) for facts, outcome in examples)


def _atoms(facts: Sequence[Facts], level: int) -> list[str]:
    """Texts of the atoms that distinguish these calls, up to a level of detail."""
    texts: dict[str, None] = {}
    for role in sorted({r for f in facts for r in f.grads}):
        texts[role] = None
    for fact in ("same_dtype", "same_device", "same_shape", "viewable", "contiguous"):
        if any(fact in f.alias for f in facts) and any(fact not in f.alias for f in facts):
            texts[fact] = None
    for role in sorted({r for f in facts for r in f.others}):
        if len({f.others.get(role) for f in facts}) > 1:
            texts[f"{role}.others='all'"] = None
            texts[f"{role}.others!='none'"] = None
    if level >= 1:
        names = sorted({n for f in facts for n in f.arguments})
        for name in names:
            values = {_key(f.arguments.get(name)): f.arguments.get(name) for f in facts}
            if len(values) < 2:
                continue
            for value in _literals(values.values(), wide=level >= 2):
                texts[f"{name}={value}"] = None
                texts[f"{name}!={value}"] = None
        for role in sorted({r for f in facts for r in f.kinds}):
            kinds = sorted({f.kinds[role] for f in facts if role in f.kinds})
            for kind in kinds if len(kinds) > 1 else ():
                texts[f"{role}.kind={kind!r}"] = None
                texts[f"{role}.kind!={kind!r}"] = None
        for role in sorted({r for f in facts for r in f.contiguous}):
            if len({f.contiguous[role] for f in facts if role in f.contiguous}) > 1:
                texts[f"{role}.contiguous=True"] = None
    if level >= 4:
        for role in sorted({r for f in facts for r in f.grads}):
            texts[f"!{role}"] = None
    if level >= 3:
        for role in sorted({r for f in facts for r in f.ndims}):
            for ndim in sorted({f.ndims[role] for f in facts if role in f.ndims}):
                texts[f"{role}.ndim={ndim}"] = None
                if ndim == 0:  # of another number the samples say nothing: there are always more dimensions
                    texts[f"{role}.ndim!={ndim}"] = None
    return list(texts)[:MAX_ATOMS]


def _key(value: Any) -> str:
    return f"{type(value).__name__}:{value!r}"


def _literals(values: Iterable[Any], *, wide: bool) -> list[str]:
    """Texts of values worth naming: flags, words and None first; numbers when `wide`."""
    out = []
    for value in values:
        if isinstance(value, str) and not value.isidentifier():
            continue  # free text (an einsum equation), not a choice
        if value is None or isinstance(value, (bool, str)) or (wide and value in NUMBERS):
            out.append(repr(value))
    return sorted(set(out), key=lambda t: (t != "True", t != "None", t))


def _fit(examples: Sequence[Example], texts: list[str]) -> tuple[int, Condition]:
    """Clauses over these atoms, and how many calls they leave undecided."""
    from gradguard.ops.conditions import parse

    rows: dict[tuple[bool, ...], set[bool]] = {}
    counts: dict[tuple[bool, ...], int] = {}
    for facts, outcome in examples:
        key = tuple(bool(facts.lookup(parse(text)[0])) for text in texts)
        rows.setdefault(key, set()).add(outcome)
        counts[key] = counts.get(key, 0) + 1
    keys = list(rows)
    positive = sum(1 << i for i, k in enumerate(keys) if rows[k] == {True})
    negative = sum(1 << i for i, k in enumerate(keys) if rows[k] == {False})
    mixed = sum(1 << i for i, k in enumerate(keys) if len(rows[k]) == 2)
    masks = {t: sum(1 << i for i, k in enumerate(keys) if k[j]) for j, t in enumerate(texts)}
    full = (1 << len(keys)) - 1
    sure, left = _cover(positive, negative | mixed, masks, full)
    if mixed or left:
        # Something decides that the language cannot say: what only a few calls speak for is left open as well.
        support = {c: _count(_mask(c, masks, full) & positive, keys, counts) for c in sure}
        sure = [c for c in sure if support[c] >= FEW]
    if not set(sure) <= set(texts):
        sure = sure[:MAX_CLAUSES]
    undecided = mixed | positive
    for clause in sure:
        undecided &= ~_mask(clause, masks, full)
    spoken = {t: m for t, m in masks.items() if ".ndim" not in t and ".contiguous" not in t}
    unsure, left = _cover(undecided, negative, spoken, full, MAX_UNSURE)
    outside = negative
    for clause in unsure:
        outside &= ~_mask(clause, masks, full)
    if left or len(unsure) > MAX_CLAUSES or (undecided and _count(outside, keys, counts) < FEW):
        unsure = ["*"]
    clauses = [*sure, *("?" if c == "*" else f"{c} & ?" for c in unsure)]
    return _count(undecided, keys, counts), tuple(clauses)


def _count(mask: int, keys: Sequence[tuple[bool, ...]], counts: Mapping[tuple[bool, ...], int]) -> int:
    return sum(counts[k] for i, k in enumerate(keys) if mask >> i & 1)


def _mask(clause: str, masks: dict[str, int], full: int) -> int:
    mask = full
    for atom in clause.split(" & ") if clause != "*" else ():
        mask &= masks[atom]
    return mask


def _cover(
    wanted: int, refused: int, masks: dict[str, int], full: int, longest: int = MAX_CLAUSE
) -> tuple[list[str], int]:
    """Few short clauses that hold for all of `wanted` and none of `refused`, the widest first; what they miss."""
    if not wanted:
        return [], 0
    if not refused:
        return ["*"], 0
    clauses: list[tuple[int, int, str]] = []
    names = list(masks)
    longest = longest if len(names) <= 36 else 2
    for size in range(1, longest + 1):
        for combo in itertools.combinations(range(len(names)), size):
            mask = full
            for i in combo:
                mask &= masks[names[i]]
            if mask & wanted and not mask & refused:
                clauses.append((mask, size, " & ".join(names[i] for i in combo)))
        covered = 0
        for mask, _, _ in clauses:
            covered |= mask
        if wanted & ~covered == 0:
            break
    chosen: list[str] = []
    left = wanted
    while left and len(chosen) < MOST_CLAUSES:
        best = max(clauses, key=lambda c: ((c[0] & left).bit_count(), -c[1]), default=None)
        if best is None or not best[0] & left:
            break
        chosen.append(best[2])
        left &= ~best[0]
    return chosen, left
