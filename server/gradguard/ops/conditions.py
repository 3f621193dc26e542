"""Reading conditions: the small language described in `model`, with three truth values.

A lookup answers each atom: True, False, or None when the fact is not known. A clause is true when all its atoms
are, a condition when one of its clauses is; what rests on an unknown atom is unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradguard.ops.model import Condition


@dataclass(frozen=True, slots=True)
class Atom:
    """One fact: `role` (requires grad), `!role`, `name=literal`, `name!=literal`, `*`, `?`, or an alias fact."""

    name: str
    relation: str = ""
    """`=`, `!=`, `!` for a role that must not require grad, or empty for a plain name."""
    value: Any = None


Lookup = Callable[[Atom], "bool | None"]

_ATOM = re.compile(r"(?P<name>[\w.]+)\s*(?P<relation>!=|=)\s*(?P<value>.+)")


@lru_cache(maxsize=4096)
def parse(clause: str) -> tuple[Atom, ...]:
    """The atoms of a clause. Raises ValueError naming the atom whose value is no literal."""
    atoms: list[Atom] = []
    for text in clause.split(" & "):
        m = _ATOM.fullmatch(text.strip())
        if m is None:
            name = text.strip()
            atoms.append(Atom(name[1:], "!") if name.startswith("!") else Atom(name))
            continue
        try:
            value = ast.literal_eval(m["value"])
        except (SyntaxError, ValueError):
            raise ValueError(f"not a literal in condition {clause!r}: {m['value']!r}") from None
        atoms.append(Atom(m["name"], m["relation"], value))
    return tuple(atoms)


def holds(condition: Condition, lookup: Lookup) -> bool | None:
    """Whether the condition holds; None when it rests on something unknown."""
    unknown = False
    for clause in condition:
        truth = _clause(parse(clause), lookup)
        if truth:
            return True
        unknown = unknown or truth is None
    return None if unknown else False


def _clause(atoms: tuple[Atom, ...], lookup: Lookup) -> bool | None:
    unknown = False
    for atom in atoms:
        if atom.name == "*":
            continue
        truth = None if atom.name == "?" else lookup(atom)
        if truth is False:
            return False
        unknown = unknown or truth is None
    return None if unknown else True


def roles_in(condition: Condition) -> set[str]:
    """Names that a condition speaks of, without the values."""
    return {atom.name for clause in condition for atom in parse(clause) if atom.name not in ("*", "?")}


def arguments_in(condition: Condition) -> list[str]:
    """The names whose values, kinds or sizes a condition compares, in order; `x.kind` for a fact of a tensor."""
    return list(
        dict.fromkeys(a.name for clause in condition for a in parse(clause) if a.relation in ("=", "!="))
    )
