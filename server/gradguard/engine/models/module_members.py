"""How modules get, lose and show their members: by name, by number, by operators."""

from __future__ import annotations

import ast

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import is_subclass
from gradguard.engine.domain.modules import (
    modules_of,
    named_children,
    paths_of,
    remove_member,
    set_member,
    unlisted,
)
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import DictV, Frame, Instance, ListV, Sym, TorchName, TupleV, Value
from gradguard.engine.models import containers
from gradguard.engine.models.registry import Registry
from gradguard.engine.python.iteration import iterate
from gradguard.engine.state import bounds
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run

MODELS = Registry()


def _children(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return ListV([child for _, child in _each_once(module)], open=unlisted(module))


def _each_once(module: Instance) -> list[tuple[str, Instance]]:
    """The children under the first of their names."""
    first: dict[int, tuple[str, Instance]] = {}
    for name, child in named_children(module):
        first.setdefault(id(child), (name, child))
    return list(first.values())


def _named_children(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return ListV([TupleV(pair) for pair in _each_once(module)], open=unlisted(module))


def _modules(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    run.work(len(module.attributes))
    return ListV(list(modules_of(module)))


def _named_modules(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    named = {id(one): prefix.removesuffix(".") for prefix, one in reversed(list(paths_of(module)))}
    return ListV([TupleV((named.get(id(one), run.fresh("str")), one)) for one in modules_of(module)])


def _register_buffer(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name, value = call.get(0, "name"), call.get(1, "tensor")
    if isinstance(name, str):
        if isinstance(value, Sym) and value.kind == "any" and value.tensor is None:
            tensor = as_tensor(run, value)
            tensor.requires_grad = False
        module.attributes[name] = value
        if call.get(2, "persistent", True) is not False:
            module.stored.add(name)
        if isinstance(value, Tensor):
            value.bound_name = f"self.{name}"
    return None


def _register_parameter(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name = call.get(0, "name")
    if isinstance(name, str):
        module.attributes[name] = call.get(1, "param")
    return None


def _add_module(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name = call.get(0, "name")
    value = call.get(1, "module")
    if isinstance(name, str):
        set_member(module, name, value)
        return None
    children = module.attributes.get("__children__")
    if isinstance(children, ListV):
        children.items.append(value)
    elif isinstance(children, DictV):
        children.items[f"__child{len(children.items)}"] = (run.fresh("str"), value)
    else:
        module.attributes[f"__child{len(module.attributes)}"] = value
    return None


def _setattr(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`super().__setattr__(name, value)`, `layers.__setattr__("1", other)`."""
    name = call.get(0, "name")
    if isinstance(name, str):
        set_member(module, name, call.get(1, "value"))
    return None


def _delattr(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name = call.get(0, "name")
    if isinstance(name, str):
        remove_member(module, name)
    return None


def _on_children(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """A method of a list or dictionary that a container of modules has, too."""
    children = module.attributes.get("__children__")
    if not isinstance(children, (ListV, DictV)):
        return module
    result = containers.method(run, frame, children, call.name, call, node)
    return module if result is None else result


def _get_member(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`get_submodule("layers.0")`, `get_parameter("head.weight")`, `get_buffer(...)`: by dotted name."""
    target = call.get(0, "target")
    if not isinstance(target, str):
        return run.fresh()
    *above, last = target.split(".")
    owner: Value = module
    for name in above:
        owner = _member(owner, name) if name else owner
    found = _member(owner, last) if last else owner
    return found if isinstance(found, (Instance, Tensor)) else run.fresh()


def _member(owner: Value, name: str) -> Value:
    if not isinstance(owner, Instance):
        return None
    if name in owner.attributes:
        return owner.attributes[name]
    return dict(named_children(owner)).get(name)


def _plus(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`first + second` of two `Sequential`, or of a `ModuleList` and any iterable: a new one with the children of both."""
    own, source = module.attributes.get("__children__"), iterate(run, frame, call.get(0, "other"), node)
    if not isinstance(own, ListV):
        return run.fresh()
    items = [*own.items, *source.source]
    is_open = bounds.cut(run, items) or own.open or not source.exact
    # Of a subclass torch makes the plain class.
    path = "torch.nn.Sequential" if _is_sequential(module) else "torch.nn.ModuleList"
    return Instance(TorchName(path), {"__children__": ListV(items, open=is_open)}, made=call.place)


def _is_sequential(module: Instance) -> bool:
    return is_subclass(module.cls, "torch.nn.Sequential")


def _gain(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`layers += others`."""
    own, source = module.attributes.get("__children__"), iterate(run, frame, call.get(0, "other"), node)
    if isinstance(own, ListV):
        own.items += source.source
        own.open = bounds.cut(run, own.items) or own.open or not source.exact
    return module


def _times(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`sequential * 2`: the same children once more."""
    own, times = module.attributes.get("__children__"), call.get(0, "other")
    if not isinstance(own, ListV) or not isinstance(times, int):
        return run.fresh()
    items = own.items * min(max(times, 1), MAX_TIMES)
    is_open = bounds.cut(run, items) or own.open or times > MAX_TIMES
    made = Instance(TorchName("torch.nn.Sequential"), made=call.place)
    made.attributes["__children__"] = ListV(items, open=is_open)
    return made


MAX_TIMES = 8
"""Repetitions of the children of a `Sequential` that are followed."""


def _contains(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`name in module_dict`, `layer in module_list`."""
    children, wanted = module.attributes.get("__children__"), call.get(0, "key")
    if isinstance(children, DictV) and isinstance(wanted, str):
        return True if wanted in children.items else run.fresh("bool") if children.open else False
    if isinstance(children, ListV) and isinstance(wanted, Instance):
        if any(one is wanted for one in children.items):
            return True
        return run.fresh("bool") if children.open else False
    return run.fresh("bool")


def _len(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    children = module.attributes.get("__children__")
    known = isinstance(children, (ListV, DictV)) and not children.open
    return len(children.items) if known and isinstance(children, (ListV, DictV)) else run.fresh("int")


MODELS.methods_of("Module", {
    "children": _children, "named_children": _named_children, "modules": _modules, "named_modules": _named_modules,
    "register_buffer": _register_buffer, "register_parameter": _register_parameter, "add_module": _add_module,
    "register_module": _add_module, "__setattr__": _setattr, "__delattr__": _delattr, "append": _on_children, "extend": _on_children,
    "insert": _on_children, "update": _on_children, "pop": _on_children, "clear": _on_children, "keys": _on_children, "values": _on_children,
    "items": _on_children, "get_submodule": _get_member, "get_parameter": _get_member, "get_buffer": _get_member,
    "__add__": _plus, "__iadd__": _gain, "__mul__": _times, "__rmul__": _times, "__contains__": _contains, "__len__": _len,
})  # fmt: skip
