"""What the engine knows of torch's and other libraries' objects: one place that sends a call to its model.

The models themselves live in `tape/lib/`: one file a subject. What an op saves or aliases is never written
there; that comes from the op table.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from gradguard.engine.dispatch.binding import Call
from gradguard.engine.domain.frame import Frame
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    BuiltinMethod,
    ClassV,
    DictV,
    External,
    Instance,
    ListV,
    SuperV,
    Sym,
    TorchName,
    TupleV,
    Value,
)
from gradguard.engine.python import attributes
from gradguard.engine.state.run import Run


class _Missing:
    """No model answers."""


MISSING = _Missing()
Handler = Callable[[Run, Frame, Call, ast.AST], Value]
TORCH: dict[str, Handler] = {}
EXTERNAL: dict[str, Handler] = {}
METHODS: dict[str, Callable[[Run, Frame, Instance, Call, ast.AST], Value]] = {}
"""Methods of torch's own classes: `Module.parameters`, `Optimizer.step`, ..."""


def torch_function(*paths: str) -> Callable[[Handler], Handler]:
    """Register the model of torch callables."""

    def register(handler: Handler) -> Handler:
        for path in paths:
            TORCH[path] = handler
        return handler

    return register


def external_function(*paths: str) -> Callable[[Handler], Handler]:
    """Register the model of other libraries' callables and of builtins (`builtins.len`)."""

    def register(handler: Handler) -> Handler:
        for path in paths:
            EXTERNAL[path] = handler
        return handler

    return register


def torch(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """Call a name of torch."""
    from gradguard.engine.models.torchlib import call as call_torch

    call.name = path.rpartition(".")[2]
    handler = TORCH.get(path)
    if handler is not None:
        return handler(run, frame, call, node)
    return call_torch(run, frame, path, call, node)


def external(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """Call a name of another library, or a builtin."""
    from gradguard.engine.models import others

    call.name = path.rpartition(".")[2]
    handler = EXTERNAL.get(path)
    if handler is not None:
        return handler(run, frame, call, node)
    return others.unknown_call(run, frame, path, call, node)


def external_attribute(run: Run, owner: External, name: str) -> Value:
    """`np.pi`, `os.path`, ..."""
    return External(
        f"{owner.path.removeprefix('builtins.')}.{name}"
        if not owner.path.startswith("builtins.")
        else f"{owner.path}.{name}"
    )


def method(run: Run, frame: Frame, receiver: Value, name: str, call: Call, node: ast.AST) -> Value:
    """Call a method of an object whose class is not of the workspace."""
    call.name = name
    if isinstance(receiver, Sym) and receiver.tensor is not None:
        receiver = receiver.tensor
    if isinstance(receiver, Tensor):
        from gradguard.engine.models.tensor_methods import method as tensor_method

        return tensor_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, Instance):
        handler = METHODS.get(f"{kind_of(receiver)}.{name}") or METHODS.get(f"object.{name}")
        if handler is not None:
            return handler(run, frame, receiver, call, node)
    from gradguard.engine.models import containers, modules, others, torchlib

    if isinstance(receiver, (ListV, TupleV, DictV)):
        return containers.method(run, frame, receiver, name, call, node)
    if isinstance(receiver, Instance):
        return others.unknown_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, SuperV):
        return modules.super_call(run, frame, receiver, name, call, node)
    if isinstance(receiver, ClassV):
        return torchlib.class_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, ArrayV):
        return others.array_method(run, frame, receiver, name, call, node)
    return others.value_method(run, frame, receiver, name, call, node)


def kind_of(instance: Instance) -> str:
    """Which of torch's base classes an object has: `Module`, `Optimizer`, `Function`, or `object`."""
    cls = instance.cls
    if not isinstance(cls, ClassV):
        path = getattr(cls, "path", "")
        return _kind_of_library(path, isinstance(cls, TorchName)) if path else _kind(cls)
    if not cls.kind:
        cls.kind = _kind(cls)
    return cls.kind


@functools.lru_cache(maxsize=1024)
def _kind_of_library(path: str, torchs: bool) -> str:
    return _kind(TorchName(path) if torchs else External(path))


def _kind(cls: Value) -> str:
    if attributes.is_subclass(cls, "torch.nn.Module"):
        return "Module"
    if attributes.is_subclass(cls, "torch.optim.Optimizer"):
        return "Optimizer"
    for one in attributes.linear(cls):
        if isinstance(one, TorchName):
            return one.path.rpartition(".")[2]
    return "object"


def instance_attribute(run: Run, owner: Instance, name: str) -> Value:
    """Attribute that torch's base class gives an object, or MISSING."""
    from gradguard.engine.models import modules, others

    kind = kind_of(owner)
    if f"{kind}.{name}" in METHODS or (kind != "object" and f"object.{name}" in METHODS):
        return BuiltinMethod(owner, name)
    if kind == "Module":
        return modules.attribute(run, owner, name)
    if getattr(owner.cls, "path", "").startswith("torch.distributions."):
        return others.distribution_attribute(run, owner, name)
    return MISSING


def array_attribute(run: Run, owner: ArrayV, name: str) -> Value:
    """Attribute of a NumPy array."""
    if name in ("T", "real", "flat"):
        return ArrayV(owner.memory_of, owner.dtype, owner.cuts)
    if name in ("shape", "dtype", "size", "ndim"):
        return run.fresh("int" if name in ("size", "ndim") else "any")
    return BuiltinMethod(owner, name)


def call_instance(run: Run, frame: Frame, callee: Instance, call: Call, node: ast.AST) -> Value:
    """Call an object: a module's forward with its hooks, or `__call__`."""
    own = attributes.class_lookup(callee.cls, "__call__")
    if own is not None:
        from gradguard.engine.python.calls import call_value

        return call_value(run, frame, attributes.bind(run, callee, own), call, node)
    if kind_of(callee) == "Module":
        from gradguard.engine.models.modules import call_module

        return call_module(run, frame, callee, call, node)
    handler = METHODS.get(f"{kind_of(callee)}.__call__")
    return handler(run, frame, callee, call, node) if handler is not None else run.fresh()


def call_unknown(run: Run, frame: Frame, callee: Value, call: Call, node: ast.AST) -> Value:
    """Call a value of unknown kind."""
    from gradguard.engine.models import others

    return others.call_sym(run, frame, callee, call, node)


def init_base(run: Run, frame: Frame, made: Instance, call: Call, node: ast.AST) -> None:
    """`__init__` that a workspace class inherits from torch."""
    from gradguard.engine.models import modules

    modules.init(run, frame, made, call, node)
