"""The members of modules: parameters, children and their names, and whether all of them are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

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


def named_children(module: Instance) -> list[tuple[str, Instance]]:
    """The children with their names, each under each name that it has, in the order in which torch has them."""
    return [
        (key, value)
        for key, value in _named_members(module)
        if isinstance(value, Instance) and is_module(value)
    ]


def _named_members(module: Instance) -> Iterator[tuple[str, Value]]:
    children = module.attributes.get("__children__")
    if isinstance(children, ListV):
        numbered = {id(value) for value in children.items if isinstance(value, Instance)}
        named: dict[int, str] = {}
        for key, value in module.attributes.items():
            if id(value) in numbered:
                named[id(value)] = key
            elif key != "__children__":
                yield key, value
        for index, value in enumerate(children.items):
            yield named.pop(id(value), str(index)), value
        return
    for key, value in module.attributes.items():
        if key != "__children__":
            yield key, value
    if isinstance(children, DictV):
        yield from ((key, value) for key, value in children.items.values() if isinstance(key, str))


def set_member(module: Instance, name: str, value: Value) -> None:
    """`module.name = value`, of a module that has numbered or named children: it becomes, or replaces, one of them.

    `setattr(layers, "1", other)` exchanges the second child, `layers.head = other` adds one.
    """
    children = module.attributes.get("__children__")
    if children is None or not is_module(module):
        module.attributes[name] = value
        return
    old = module.attributes.get(name)
    if isinstance(children, ListV) and name.isdigit():
        at = int(name)
        if at < len(children.items):
            replace_child(module, at, value)
        else:
            children.items.append(value)
        return
    if isinstance(children, DictV) and isinstance(value, Instance) and is_module(value):
        children.items[name] = (name, value)
        return
    module.attributes[name] = value
    if isinstance(children, ListV) and isinstance(value, Instance) and is_module(value):
        at = next((at for at, one in enumerate(children.items) if one is old), -1)
        if old is not None and at >= 0:
            children.items[at] = value
        else:
            children.items.append(value)


def replace_child(module: Instance, at: int, value: Value) -> None:
    """Put another child in the place of a numbered one, whatever name it has."""
    children = module.attributes["__children__"]
    assert isinstance(children, ListV)
    old, children.items[at] = children.items[at], value
    for name, held in list(module.attributes.items()):
        if held is old and name != "__children__":
            module.attributes[name] = value


def remove_member(module: Instance, name: str) -> None:
    """`del module.name`."""
    children = module.attributes.get("__children__")
    old = module.attributes.pop(name, None)
    if isinstance(children, DictV):
        children.items.pop(name, None)
    elif isinstance(children, ListV):
        if name.isdigit() and int(name) < len(children.items):
            old = children.items[int(name)]
        children.items[:] = [one for one in children.items if old is None or one is not old]


class _Members(MutableMapping[object, tuple[Value, Value]]):
    """Some of a module's members as the items of a dictionary: who changes one changes the other."""

    def __init__(self, module: Instance, belongs: Callable[[Value], bool]) -> None:
        self._module, self._belongs = module, belongs

    def _known(self) -> dict[str, Value]:
        return {name: value for name, value in _named_members(self._module) if self._belongs(value)}

    def __getitem__(self, key: object) -> tuple[Value, Value]:
        return str(key), self._known()[str(key)]

    def __setitem__(self, key: object, item: tuple[Value, Value]) -> None:
        set_member(self._module, str(key), item[1])

    def __delitem__(self, key: object) -> None:
        if str(key) not in self._known():
            raise KeyError(key)
        remove_member(self._module, str(key))

    def __iter__(self) -> Iterator[object]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())


_BELONGS: dict[str, Callable[[Value], bool]] = {
    "_modules": lambda value: isinstance(value, Instance) and is_module(value),
    "_parameters": lambda value: isinstance(value, Tensor) and value.parameter,
    "_buffers": lambda value: isinstance(value, Tensor) and not value.parameter,
}


def registered(module: Instance, what: str) -> DictV:
    """`module._modules`, `module._parameters`, `module._buffers`."""
    return DictV(_Members(module, _BELONGS[what]), open=unlisted(module), kind=what.removeprefix("_"))


def unlisted(module: Instance) -> bool:
    """Whether a module itself may have children or parameters that are not known."""
    children = module.attributes.get("__children__")
    if module.attributes.get("__opaque__") or (isinstance(children, (ListV, DictV)) and children.open):
        return True
    members = members_of(module)
    if any(isinstance(value, Sym) and value.kind == "module" for value in members):
        return True
    # An attribute of any kind is a setting far more often than a layer, where others are layers.
    found = any(
        isinstance(value, Tensor) or (isinstance(value, Instance) and is_module(value)) for value in members
    )
    return not found and any(isinstance(value, Sym) and value.kind == "any" for value in members)
