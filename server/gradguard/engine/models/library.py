"""What the engine knows of torch's and other libraries' objects: one place that sends a call to its model.

The models themselves are the other files of this room: one file a subject. What an op saves or aliases is never written there;
that comes from the op table.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import kind_of
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    BuiltinMethod,
    ClassV,
    DictV,
    External,
    Frame,
    Instance,
    ListV,
    SuperV,
    Sym,
    TupleV,
    Value,
    contents,
)
from gradguard.engine.models import (
    autograd,
    builtins,
    by_name,
    collectives,
    containers,
    creation,
    differentiating,
    einsum,
    hooks,
    iterators,
    module_members,
    module_methods,
    modules,
    operations,
    optim,
    others,
    packages,
    standard,
    stores,
    tensor_methods,
    torchlib,
)
from gradguard.engine.models.frameworks import ignite, lightning, transformers, wrappers
from gradguard.engine.models.registry import Method, Registry
from gradguard.engine.observe.lending import TELLING
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.run import Run

REGISTRY = Registry.of(
    part.MODELS
    for part in (
        autograd, builtins, by_name, collectives, creation, differentiating, einsum, hooks, iterators, module_members, module_methods, modules, operations, optim, packages, standard, stores, torchlib,
        ignite, lightning, transformers, wrappers,
    )
)  # fmt: skip
"""Every model, by what it stands for."""


LOOKS = (
    "torch.cuda.", "torch.backends.", "torch.device", "torch.manual_seed", "torch.random.", "torch.seed", "torch.save", "torch.is_",
    "torch.get_", "torch.finfo", "torch.iinfo", "torch.Size",
)  # fmt: skip
"""What torch's functions are named that change nothing which the tape knows."""
CHANGES = frozenset({
    "delattr", "eval", "exec", "exit", "_exit", "globals", "locals", "next", "quit", "setattr", "__setattr__", "__setitem__",
    "__delitem__", "heappush", "heappop", "heappushpop", "heapreplace", "insort", "insort_left", "insort_right",
})  # fmt: skip
"""Functions of the standard library that may change something."""
TELLS = frozenset(
    {
        "children",
        "flush",
        "get_last_lr",
        "modules",
        "named_children",
        "named_modules",
        "parameters",
        "state_dict",
    }
)
"""Methods of torch's objects that only tell something."""


def torch(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """Call a name of torch."""
    call.name = path.rpartition(".")[2]
    if not path.startswith(LOOKS):
        run.trail.touched += 1
    handler = REGISTRY.torch.get(path)
    if handler is not None:
        return handler(run, frame, call, node)
    return torchlib.call(run, frame, path, call, node)


def external(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """Call a name of another library, or a builtin."""
    call.name = path.rpartition(".")[2]
    if call.name in CHANGES:
        run.trail.touched += 1
    handler = REGISTRY.external.get(path)
    if handler is not None:
        return handler(run, frame, call, node)
    owner = call.args[0] if call.args else None
    if classes.holds(External(path.rpartition(".")[0])) and isinstance(contents(owner), (ListV, DictV)):
        # `dict.__getitem__(rows, key)`.
        rest = Call(call.args[1:], call.kwargs, call.place, call.exprs[1:], call.kwexprs, call.name)
        holder = (
            owner
            if isinstance(owner, Instance)
            else Instance(External("builtins.object"), {"__children__": owner})
        )
        return stores.inherited(run, frame, holder, call.name, rest, node)
    return others.unknown_call(run, frame, path, call, node)


def _of_framework(owner: Instance, name: str) -> Method | None:
    """The model of a method that a class of the program inherits from a framework's."""
    for base in classes.linear(owner.cls):
        if isinstance(base, External):
            handler = REGISTRY.methods.get(f"{base.path.rpartition('.')[2]}.{name}")
            if handler is not None:
                return handler
    return None


def external_attribute(run: Run, owner: External, name: str) -> Value:
    """`np.pi`, `os.path`, ..."""
    return External(f"{owner.path}.{name}")


def method(run: Run, frame: Frame, receiver: Value, name: str, call: Call, node: ast.AST) -> Value:
    """Call a method of an object whose class is not of the workspace."""
    call.name = name
    if isinstance(receiver, Sym) and receiver.tensor is not None:
        receiver = receiver.tensor
    if isinstance(receiver, Tensor):
        return tensor_methods.method(run, frame, receiver, name, call, node)
    if isinstance(receiver, Instance):
        if name not in TELLING and name not in TELLS:
            run.trail.act()
        handler = REGISTRY.methods.get(f"{kind_of(receiver)}.{name}") or REGISTRY.methods.get(
            f"object.{name}"
        )
        if handler is not None:
            return handler(run, frame, receiver, call, node)
        handler = _of_framework(receiver, name)
        if handler is not None:
            return handler(run, frame, receiver, call, node)
        if "__children__" in receiver.attributes:
            made = stores.inherited(run, frame, receiver, name, call, node)
            if made is not MISSING:
                return made

    if isinstance(receiver, (ListV, TupleV, DictV)):
        return containers.method(run, frame, receiver, name, call, node)
    if isinstance(receiver, Instance):
        return others.unknown_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, SuperV):
        return super_call(run, frame, receiver, name, call, node)
    if isinstance(receiver, ClassV):
        return torchlib.class_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, ArrayV):
        return others.array_method(run, frame, receiver, name, call, node)
    return others.value_method(run, frame, receiver, name, call, node)


def instance_attribute(run: Run, owner: Instance, name: str) -> Value:
    """Attribute that torch's base class gives an object, or MISSING."""
    kind = kind_of(owner)
    if f"{kind}.{name}" in REGISTRY.methods or (kind != "object" and f"object.{name}" in REGISTRY.methods):
        return BuiltinMethod(owner, name)
    if _of_framework(owner, name) is not None:
        return BuiltinMethod(owner, name)
    if "__children__" in owner.attributes and containers.has(contents(owner), name):
        return BuiltinMethod(owner, name)
    if kind == "Module":
        return modules.attribute(run, owner, name)
    if getattr(owner.cls, "path", "").startswith("torch.distributions."):
        return others.distribution_attribute(run, owner, name)
    return MISSING


def special(
    run: Run, frame: Frame, receiver: Instance, name: str, args: Sequence[Value], node: ast.AST
) -> Value:
    """A special method that torch's base class gives an object, called; MISSING where it has none."""
    handler = REGISTRY.methods.get(f"{kind_of(receiver)}.{name}")
    if handler is None:
        return MISSING
    call = Call(list(args), {}, run.place(frame, node), [None] * len(args), {})
    call.name = name
    return handler(run, frame, receiver, call, node)


def array_attribute(run: Run, owner: ArrayV, name: str) -> Value:
    """Attribute of a NumPy array."""
    if name in ("T", "real", "flat"):
        return ArrayV(owner.memory_of, owner.dtype, owner.cuts)
    if name in ("shape", "dtype", "size", "ndim"):
        return run.fresh("int" if name in ("size", "ndim") else "any")
    return BuiltinMethod(owner, name)


def call_instance(run: Run, frame: Frame, callee: Instance, call: Call, node: ast.AST) -> Value:
    """Call an object: a module's forward with its hooks, or `__call__`."""
    own = classes.class_lookup(callee.cls, "__call__")
    if own is not None:
        return call_value(run, frame, classes.bind(callee, own), call, node)
    if kind_of(callee) == "Module":
        return modules.call_module(run, frame, callee, call, node)
    handler = REGISTRY.methods.get(f"{kind_of(callee)}.__call__")
    return handler(run, frame, callee, call, node) if handler is not None else run.fresh()


def super_call(run: Run, frame: Frame, owner: SuperV, name: str, call: Call, node: ast.AST) -> Value:
    """`super().method(...)` where no workspace base defines it."""
    receiver = owner.receiver
    if name == "__init__":
        if isinstance(receiver, Instance):
            modules.init(run, frame, receiver, call, node)
        return None
    if isinstance(receiver, Instance):
        if name in ("forward", "__call__"):
            return modules.forward_base(run, frame, receiver, call, node)
        handler = REGISTRY.methods.get(f"{kind_of(receiver)}.{name}")
        if handler is not None:
            return handler(run, frame, receiver, call, node)
        if "__children__" in receiver.attributes and classes.holds(receiver.cls):
            return stores.inherited(run, frame, receiver, name, call, node)
        if name == "__setattr__" and len(call.args) == 2 and isinstance(call.args[0], str):
            receiver.attributes[call.args[0]] = call.args[1]
            return None
    return run.fresh()


class Library:
    """The models as the interpreter asks for them."""

    torch = staticmethod(torch)
    external = staticmethod(external)
    method = staticmethod(method)
    call_instance = staticmethod(call_instance)
    call_unknown = staticmethod(others.call_sym)
    init_base = staticmethod(modules.init)
    external_attribute = staticmethod(external_attribute)
    instance_attribute = staticmethod(instance_attribute)
    special = staticmethod(special)
    array_attribute = staticmethod(array_attribute)
    tensor_attribute = staticmethod(tensor_methods.attribute)
    set_tensor_attribute = staticmethod(tensor_methods.set_attribute)
