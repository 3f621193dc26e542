"""From watched calls to conditions: the shortest text of the condition language that fits every call.

An example is the set of atoms that were true and the outcome. The search widens step by step, so that a fact which
who-requires-grad explains is never told in terms of sizes: first which roles require grad, then argument values,
then numbers of dimensions. Where equal atoms led to different outcomes the clause ends in `?`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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

    def lookup(self, atom: Atom) -> bool | None:
        if atom.relation == "!":
            return atom.name not in self.grads
        if not atom.relation:
            return atom.name in self.grads or atom.name in self.alias
        if atom.name.endswith(".ndim"):
            value: Any = self.ndims.get(atom.name[: -len(".ndim")])
        else:
            value = self.arguments.get(atom.name)
        equal = type(value) is type(atom.value) and value == atom.value
        if isinstance(value, (int, float)) and isinstance(atom.value, (int, float)):
            equal = value == atom.value and isinstance(value, bool) == isinstance(atom.value, bool)
        return equal if atom.relation == "=" else not equal


class Given:
    """Stands for an argument that was given and is no literal."""

    def __repr__(self) -> str:
        return "GIVEN"


GIVEN = Given()

Example = tuple[Facts, bool]

LEVELS = 5
MAX_CLAUSE = 4
MAX_CLAUSES = 4
MOST_CLAUSES = 20
"""More clauses than `MAX_CLAUSES` are readable only when each is a single fact: any of these roles."""
MAX_ATOMS = 40


def learn(examples: Sequence[Example]) -> Condition:
    """A condition that is true of exactly the calls with outcome True, as far as the language can tell."""
    if not any(outcome for _, outcome in examples):
        return NEVER
    if all(outcome for _, outcome in examples):
        return ALWAYS
    best: tuple[int, Condition] | None = None
    for level in range(LEVELS):
        texts = _atoms([f for f, _ in examples], level)
        mixed, condition = _fit(examples, texts)
        if condition is None or (len(condition) > MAX_CLAUSES and not set(condition) <= set(texts)):
            continue
        if mixed == 0:
            return condition
        # A longer text must explain much more to be worth reading.
        if best is None or mixed < best[0] * 0.7:
            best = (mixed, condition)
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
    if level >= 1:
        names = sorted({n for f in facts for n in f.arguments})
        for name in names:
            values = {_key(f.arguments.get(name)): f.arguments.get(name) for f in facts}
            if len(values) < 2:
                continue
            for value in _literals(values.values(), wide=level >= 2):
                texts[f"{name}={value}"] = None
                texts[f"{name}!={value}"] = None
    if level >= 4:
        for role in sorted({r for f in facts for r in f.grads}):
            texts[f"!{role}"] = None
    if level >= 3:
        for role in sorted({r for f in facts for r in f.ndims}):
            for ndim in sorted({f.ndims[role] for f in facts if role in f.ndims}):
                texts[f"{role}.ndim={ndim}"] = None
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
        if value is None or isinstance(value, (bool, str)) or (wide and isinstance(value, (int, float))):
            if value == value and value not in (float("inf"), float("-inf")):
                out.append(repr(value))
    return sorted(set(out), key=lambda t: (t != "True", t != "None", t))


def _fit(examples: Sequence[Example], texts: list[str]) -> tuple[int, Condition | None]:
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
    sure = _cover(positive, negative | mixed, masks, full)
    if sure is None:
        return 0, None
    unsure = _cover(mixed, negative, masks, full) if mixed else ()
    if unsure is None:
        return 0, None
    undecided = sum(counts[k] for i, k in enumerate(keys) if mixed >> i & 1)
    clauses = [*sure, *("?" if c == "*" else f"{c} & ?" for c in unsure)]
    return undecided, tuple(clauses)


def _cover(wanted: int, refused: int, masks: dict[str, int], full: int) -> tuple[str, ...] | None:
    """Few short clauses that hold for all of `wanted` and none of `refused`; None when there are none."""
    if not wanted:
        return ()
    clauses: list[tuple[int, int, str]] = []
    if not refused:
        return ("*",)
    names = list(masks)
    longest = MAX_CLAUSE if len(names) <= 36 else MAX_CLAUSE - 2
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
    while left:
        best = max(clauses, key=lambda c: ((c[0] & left).bit_count(), -c[1]), default=None)
        if best is None or not best[0] & left:
            return None
        chosen.append(best[2])
        left &= ~best[0]
        if len(chosen) > MOST_CLAUSES:
            return None
    return tuple(chosen)
