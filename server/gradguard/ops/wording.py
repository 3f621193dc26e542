"""Conditions and roles of a row put into words that a person can read.

What is long is condensed: the parameters of a module stand together, and so do the roles of one condition. The whole
of a row is in `gradguard ops --format json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gradguard.ops.conditions import Atom, parse
from gradguard.ops.model import Condition

NAMED = 4
"""That many parameters of a module are told by name."""

_FACTS = {
    "contiguous": "it is contiguous",
    "same_dtype": "the dtype is the same",
    "same_device": "the device is the same",
    "same_shape": "the shape is the same",
    "viewable": "the new shape needs no copy",
}
UNSURE = "shapes or values decide"
_LAYER = re.compile(r"(?:^|(?<=\.))(?:encoder|decoder)\.|layers\.\d+\.|_l\d+(?:_reverse)?$")
"""What tells one layer's parameter from another's."""


def phrase(what: str, when: Condition) -> str:
    """`what`, with the condition in words."""
    if "*" in when or not when:
        return what
    return f"{what} {words(when)}"


def words(when: Condition) -> str:
    """A condition in words."""
    roles: list[str] = []
    doubtful: list[str] = []
    others: list[str] = []
    open_end = False
    for clause in when:
        atoms = parse(clause)
        sure = [a for a in atoms if a.name != "?"]
        unsure = len(sure) < len(atoms)
        if not sure:
            open_end = open_end or unsure
        elif len(sure) == 1 and not sure[0].relation and sure[0].name not in _FACTS:
            (doubtful if unsure else roles).append(sure[0].name)
        else:
            text = " and ".join(_atom(a) for a in sure)
            others.append(f"sometimes if {text}" if unsure else f"if {text}")
    parts = [f"if {any_of(roles)} requires grad"] if roles else []
    parts += others
    parts += [f"sometimes if {any_of(doubtful)} requires grad"] if doubtful else []
    parts += ["sometimes"] if open_end else []
    text = " or ".join(dict.fromkeys(parts)).replace(" or if ", " or ")
    return f"{text} ({UNSURE})" if "sometimes" in text else text


def any_of(roles: Sequence[str]) -> str:
    """Roles joined by "or"; the parameters of a module stand together where they are many."""
    plain = [f"`{r}`" for r in roles if not r.startswith("self.")]
    inner = [r for r in roles if r.startswith("self.")]
    if len(inner) > 2:
        plain.append("a parameter of it")
    else:
        plain += [f"`{r}`" for r in inner]
    return _listed(plain, "or")


def all_of(roles: Sequence[str]) -> str:
    """Roles in a row; the parameters of a module stand together where they are many, those of every layer as one."""
    plain = [f"`{r}`" for r in roles if not r.startswith("self.")]
    inner = [r for r in roles if r.startswith("self.")]
    if len(inner) <= NAMED:
        return ", ".join(plain + [f"`{r}`" for r in inner])
    families = list(dict.fromkeys(_LAYER.sub("", r.removeprefix("self.")) for r in inner))
    if len(families) > NAMED:
        kinds = dict.fromkeys(f.rpartition(".")[2] for f in families)
        families = list(kinds)[: NAMED + 1] if len(kinds) <= NAMED + 1 else [*list(kinds)[:NAMED], "..."]
    named = ", ".join(f"`{f}`" if f != "..." else f for f in families)
    layered = any(_LAYER.search(r.removeprefix("self.")) for r in inner)
    return ", ".join([*plain, f"{len(inner)} parameters ({named}{' of every layer' if layered else ''})"])


def grouped(pairs: Iterable[tuple[str, Condition]]) -> list[tuple[str, Condition]]:
    """Roles of one condition together, as words, in the order of the first of each."""
    together: dict[str, tuple[list[str], Condition]] = {}
    for role, when in pairs:
        key = "" if "*" in when else words(when)
        roles = together.setdefault(key, ([], when))[0]
        if role not in roles:
            roles.append(role)
    return [(all_of(roles), when) for roles, when in together.values()]


def _listed(items: Sequence[str], word: str) -> str:
    return " ".join([", ".join(items[:-1]), word, items[-1]]) if len(items) > 1 else items[0]


def _atom(atom: Atom) -> str:
    if atom.name in _FACTS:
        return _FACTS[atom.name]
    if not atom.relation:
        return f"`{atom.name}` requires grad"
    if atom.relation == "!":
        return f"`{atom.name}` does not require grad"
    equal = atom.relation == "="
    head, _, last = atom.name.rpartition(".")
    if last == "ndim" and atom.value == 0:
        return f"`{head}` has {'no' if equal else 'a'} dimension"
    if last == "ndim":
        return f"`{head}` has {'' if equal else 'not '}{atom.value} dimension{'s' * (atom.value != 1)}"
    if last == "contiguous":
        return f"`{head}` is {'' if equal else 'not '}contiguous"
    if last == "others":
        return _OTHERS[equal, atom.value].format(head)
    if last == "dtype" and head:
        return f"`{head}` is {'' if equal else 'not '}of dtype `{atom.value}`"
    if last == "kind":
        return f"`{head}` is {'' if equal else 'not '}{_KINDS.get(atom.value, atom.value)}"
    if atom.value is None:
        return f"`{atom.name}` is {'not given' if equal else 'given'}"
    if atom.value is True:
        return f"`{atom.name}={equal}`"
    return f"`{atom.name} {'==' if equal else '!='} {atom.value!r}`"


_OTHERS = {
    (True, "all"): "every other tensor of `{}` requires grad",
    (True, "none"): "no other tensor of `{}` requires grad",
    (False, "all"): "not every other tensor of `{}` requires grad",
    (False, "none"): "another tensor of `{}` requires grad",
}
_KINDS = {"int": "of integers", "bool": "of bools", "float": "floating", "complex": "complex"}
