"""The members of modules: parameters, children and their names, and whether all of them are known."""

from __future__ import annotations

from collections.abc import Iterator

from gradguard.engine.domain.classes import kind_of
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import DictV, Instance, ListV, Sym, Value


def parameters(module: Value) -> list[Tensor]:
    """Parameters of a module and its children, in order of definition, each once."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    waiting: list[Value] = [module] if isinstance(module, Instance) else []
    while waiting:
        value = waiting.pop()
        if type(value) is Tensor:
            found.setdefault(value.number, value)
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += reversed(
                [
                    one
                    for one in members_of(value)
                    if (type(one) is Tensor and one.parameter) or (type(one) is Instance and is_module(one))
                ]
            )
    return list(found.values())


def is_module(value: Instance) -> bool:
    """Whether an object is a module."""
    return kind_of(value) == "Module"


def members_of(module: Value) -> list[Value]:
    """The values that a module holds: attributes and children."""
    if not isinstance(module, Instance):
        return []
    children = module.attributes.get("__children__")
    if children is None:
        return list(module.attributes.values())
    members = [value for key, value in module.attributes.items() if key != "__children__"]
    if isinstance(children, ListV):
        members.extend(children.items)
    elif isinstance(children, DictV):
        members.extend(value for _, value in children.items.values())
    return members


def modules_of(module: Instance) -> list[Instance]:
    """The module itself and every module below it."""
    found: dict[int, Instance] = {}
    waiting = [module]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += reversed(
                [value for value in members_of(one) if type(value) is Instance and is_module(value)]
            )
    return list(found.values())


def extent(module: Instance) -> int:
    """The number of members of a module and of all modules below it."""
    return sum(len(members_of(one)) for one in modules_of(module))


def complete(module: Instance) -> bool:
    """Whether all parameters are known: no opaque part below."""
    for one in modules_of(module):
        if one.attributes.get("__opaque__") or any(
            isinstance(v, Sym) and v.kind in ("any", "module") for v in members_of(one)
        ):
            return False
        children = one.attributes.get("__children__")
        if isinstance(children, (ListV, DictV)) and children.open:
            return False
    return True


def names(module: Instance) -> dict[int, str]:
    """Dotted name of each parameter and buffer below a module, by the tensor's number."""
    found: dict[int, str] = {}
    for prefix, one in paths_of(module):
        for key, value in one.attributes.items():
            if isinstance(value, Tensor):
                found.setdefault(value.number, f"{prefix}{key}")
    return found


def paths_of(module: Instance) -> Iterator[tuple[str, Instance]]:
    """(dotted prefix, module) of the module itself and everything below it."""
    waiting = [("", module)]
    seen: set[int] = set()
    while waiting:
        prefix, one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield prefix, one
        below = [
            (f"{prefix}{key}.", value)
            for key, value in _named_members(one)
            if isinstance(value, Instance) and is_module(value)
        ]
        # No message names a part that is nested this deeply.
        waiting += reversed(below if len(prefix) < MAX_PREFIX else [])


MAX_PREFIX = 1000
"""Characters of the dotted name of a module that is looked into."""


def _named_members(module: Instance) -> Iterator[tuple[str, Value]]:
    children = module.attributes.get("__children__")
    for key, value in module.attributes.items():
        if key != "__children__":
            yield key, value
    if isinstance(children, ListV):
        yield from ((str(index), value) for index, value in enumerate(children.items))
    elif isinstance(children, DictV):
        yield from ((key, value) for key, value in children.items.values() if isinstance(key, str))
