"""Reading and writing attributes; classes and their inheritance."""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping

from gradguard.engine.autograd import machine
from gradguard.engine.domain import classes, modules, spelling, versions
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import _property, bind, class_lookup, is_subclass, linear
from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.modules import is_module
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    BuiltinMethod,
    ClassV,
    ContextV,
    DictV,
    External,
    Frame,
    FunctionV,
    Instance,
    IteratorV,
    ListV,
    Method,
    ModuleV,
    NativeV,
    PartialV,
    SuperV,
    Sym,
    TorchName,
    TupleV,
    Value,
)
from gradguard.engine.domain.versions import VersionV
from gradguard.engine.observe import lifetime
from gradguard.engine.observe.lending import lend
from gradguard.engine.python import imports
from gradguard.engine.state.run import Run


def get(run: Run, frame: Frame, owner: Value, name: str, node: ast.Attribute) -> Value:
    """`owner.name` as a value."""
    if isinstance(owner, Sym) and owner.tensor is not None:
        owner = owner.tensor
    if isinstance(owner, TorchName):
        return _torch_name(run, owner, name)
    if isinstance(owner, Instance):
        return instance_get(run, frame, owner, name, node)
    if isinstance(owner, Tensor):
        value = run.models.tensor_attribute(run, frame, owner, name, node)
        if run.trace is not None and isinstance(value, Tensor):
            run.trace.read(node, value)
        return value
    if isinstance(owner, ModuleV):
        return imports.member(run, owner.namespace, name)
    if isinstance(owner, External):
        return run.models.external_attribute(run, owner, name)
    if isinstance(owner, ClassV):
        return _class_get(run, owner, name)
    if isinstance(owner, SuperV):
        return _super_get(run, owner, name)
    if isinstance(owner, TupleV) and name in owner.names:
        index = owner.names.index(name)
        return owner.items[index] if index < len(owner.items) else run.fresh()
    if isinstance(owner, (ListV, TupleV, DictV, str, ArrayV, bytes)):
        if isinstance(owner, ArrayV):
            return run.models.array_attribute(run, owner, name)
        return BuiltinMethod(owner, name)
    if isinstance(owner, FunctionV):
        if name in owner.attributes:
            return owner.attributes[name]
        return owner.name if name in ("__name__", "__qualname__") else BuiltinMethod(owner, name)
    if isinstance(owner, (NativeV, PartialV, Method, IteratorV)) or (
        isinstance(owner, ContextV) and name in ("__enter__", "__exit__")
    ):
        return BuiltinMethod(owner, name)
    if isinstance(owner, Sym):
        return _unknown_get(run, owner, name)
    if isinstance(owner, (int, float, complex)) and not isinstance(owner, bool):
        return BuiltinMethod(owner, name)
    if isinstance(owner, VersionV):
        return _version_get(run, owner, name)
    return run.fresh(text=name)


def _version_get(run: Run, owner: VersionV, name: str) -> Value:
    if name in ("major", "minor", "micro"):
        return owner.part(("major", "minor", "micro").index(name))
    if name in ("base_version", "public"):
        return owner
    return run.fresh(text=name)


def _torch_name(run: Run, owner: TorchName, name: str) -> Value:
    path = f"{owner.path}.{name}"
    if path == "torch.Tensor":
        return TorchName(path)
    if path in ("torch.pi", "torch.inf", "torch.nan", "torch.e"):
        return {"pi": 3.141592653589793, "inf": float("inf"), "nan": float("nan"), "e": 2.718281828459045}[
            name
        ]
    if path == "torch.__version__":
        return versions.of_torch(run.table.version)
    if name == "__version__":
        return run.fresh("str")
    return TorchName(path)


def _unknown_get(run: Run, owner: Sym, name: str) -> Value:
    if name in owner.attributes:
        return owner.attributes[name]
    if owner.kind in ("int", "number", "index", "str") or (owner.kind == "tensor"):
        return BuiltinMethod(owner, name)
    made = Sym(
        Key(owner.key, "attr", name),
        data=owner.data and name not in ("grad",),
        text=f"{owner.text}.{name}" if owner.text else name,
    )
    made.owner, made.name = owner, name
    if name == "requires_grad":
        made.trains = owner
    owner.attributes[name] = made
    return made


def instance_get(run: Run, frame: Frame, owner: Instance, name: str, node: ast.AST) -> Value:
    """Attribute of an object: its own, then its class's, then what torch's base class gives."""
    if name in owner.attributes:
        value = owner.attributes[name]
        if run.trace is not None and isinstance(value, Tensor):
            run.trace.read(node, value)
        return value
    found = class_lookup(owner.cls, name)
    if found is not None:
        if isinstance(found, Instance) and class_lookup(found.cls, "__get__") is not None:
            getter = bind(found, class_lookup(found.cls, "__get__"))
            asked = Call([owner, owner.cls], {}, run.place(frame, node), [None, None], {})
            return run.python.call(run, frame, getter, asked, node)
        if isinstance(found, FunctionV) and found.kind in ("property", "cached_property"):
            value = run.python.call(
                run, frame, found, Call([owner], {}, run.place(frame, node), [None], {}), node
            )
            if found.kind == "cached_property":
                owner.attributes[name] = value
            return value
        return bind(owner, found)
    if name == "__class__":
        return owner.cls
    if name == "__dict__":
        return own_names(owner)
    value = run.models.instance_attribute(run, owner, name)
    if value is not MISSING:
        return value
    getter = class_lookup(owner.cls, "__getattr__")
    if getter is not None and not (name.startswith("__")):
        given: list[Value] = [name] if isinstance(getter, FunctionV) else [owner, name]
        call = Call(given, {}, run.place(frame, node), [None for _ in given], {})
        return run.python.call(run, frame, bind(owner, getter), call, node)
    made = run.fresh(text=name)
    owner.attributes[name] = made
    return made


class _OwnNames(MutableMapping[object, tuple[Value, Value]]):
    """An object's attributes as the items of a dictionary: who changes one changes the other."""

    def __init__(self, attributes: dict[str, Value]) -> None:
        self.attributes = attributes

    def __getitem__(self, key: object) -> tuple[Value, Value]:
        return str(key), self.attributes[str(key)]

    def __setitem__(self, key: object, item: tuple[Value, Value]) -> None:
        self.attributes[str(key)] = item[1]

    def __delitem__(self, key: object) -> None:
        del self.attributes[str(key)]

    def __iter__(self) -> Iterator[object]:
        return iter([name for name in self.attributes if not _internal(name)])

    def __len__(self) -> int:
        return sum(not _internal(name) for name in self.attributes)


def _internal(name: str) -> bool:
    """Whether the engine itself keeps something under this name."""
    return name.startswith("__") and name.endswith("__")


def own_names(owner: Instance) -> DictV:
    """`owner.__dict__`, `vars(owner)`."""
    return DictV(_OwnNames(owner.attributes), open=classes.kind_of(owner) != "object")


def _class_get(run: Run, owner: ClassV, name: str) -> Value:
    found = class_lookup(owner, name)
    if found is not None:
        return Method(owner, found) if isinstance(found, FunctionV) and found.kind == "classmethod" else found
    if name in ("__name__", "__qualname__"):
        return owner.name
    if name == "apply" and is_subclass(owner, "torch.autograd.Function"):
        return BuiltinMethod(owner, "apply")
    return BuiltinMethod(owner, name)


def super_of(frame: Frame) -> SuperV:
    """Zero-argument `super()`."""
    holder: Frame | None = frame
    while holder is not None and holder.owner is None:
        holder = holder.parent
    return SuperV(holder.receiver if holder else frame.receiver, holder.owner if holder else None)


def _super_get(run: Run, owner: SuperV, name: str) -> Value:
    receiver = owner.receiver
    cls = receiver.cls if isinstance(receiver, Instance) else receiver
    order = list(linear(cls))
    start = order.index(owner.after) + 1 if owner.after in order else 0
    for one in order[start:]:
        if isinstance(one, ClassV) and name in one.attributes:
            return bind(receiver, one.attributes[name])
    return BuiltinMethod(owner, name)


def class_item(run: Run, owner: Value, index: Value) -> Value:
    """`List[int]` and its like stay what they are; anything else is unknown."""
    if isinstance(owner, ClassV) and isinstance(index, str):
        # `Mode["train"]` is a member of an enumeration.
        return class_lookup(owner, index)
    if isinstance(owner, (External, TorchName)) and owner.path.endswith(".__dict__"):
        # `nn.__dict__["ReLU"]`.
        home = owner.path.removesuffix(".__dict__")
        return type(owner)(f"{home}.{index}") if isinstance(index, str) else run.fresh()
    if isinstance(owner, (External, TorchName, ClassV)):
        return owner
    return run.fresh()


def put(
    run: Run, frame: Frame, owner: Value, name: str, value: Value, node: ast.AST, *, augmented: bool = False
) -> None:
    """`owner.name = value`."""
    if isinstance(owner, Sym) and owner.tensor is not None:
        owner = owner.tensor
    if isinstance(owner, Instance) and _guarded(run, frame, owner, name, value, node):
        return
    place = run.place(frame, run.statement or node)
    if isinstance(owner, Tensor):
        run.models.set_tensor_attribute(run, frame, owner, name, value, node, augmented=augmented)
        return
    held = value.tensor if isinstance(value, Sym) else value
    if isinstance(held, Tensor) and not augmented:
        machine.bound(run, held, place, spelling.source_text(node) or name)
        if held.stored_at is not None:
            # `pair = (loss, step)` and then `self.last, _ = pair`: what lasts is the attribute.
            held.stored_at, held.stored_inside = place, False
        if held.grad_owner is not None:
            held.memory.kept = place
    elif isinstance(held, (ListV, TupleV, DictV, FunctionV, PartialV)):
        run.weigh((held,))
        for tensor in lifetime.bound_in(held):
            machine.stored(run, tensor, place, tensor.bound_name, inside=True)
    if isinstance(owner, (Instance, Sym)):
        run.trail.put(f".{name}", owner.attributes.get(name), value)
    else:
        run.trail.changed.append(f".{name}")
    if isinstance(owner, Instance):
        old = owner.attributes.get(name)
        modules.set_member(owner, name, value)
        if old is not None:
            lifetime.replaced(run, frame, old, value)
        if owner.context is not None:
            owner.context.put[name] = place, spelling.source_text(node)
        if name == "training" and isinstance(value, bool) and not _property(owner.cls, name):
            owner.training = value
    elif isinstance(owner, ClassV):
        owner.attributes[name] = value
    elif isinstance(owner, ModuleV):
        imports.loaded(run, owner.namespace)[name] = value
    elif isinstance(owner, (FunctionV, Sym)):
        owner.attributes[name] = value
    else:
        lend(run, (value,))


def _registers(owner: Instance, value: Value) -> bool:
    """Whether `nn.Module.__setattr__` keeps a value by itself, and asks no property."""
    kept = value.parameter if isinstance(value, Tensor) else isinstance(value, Instance) and is_module(value)
    return kept and is_module(owner)


def _guarded(run: Run, frame: Frame, owner: Instance, name: str, value: Value, node: ast.AST) -> bool:
    """Whether code of the object's class binds its attributes: `__setattr__`, a property, a descriptor."""
    own = class_lookup(owner.cls, "__setattr__")
    given: list[Value] = [name, value]
    if own is not None:
        given = given if isinstance(own, FunctionV) else [owner, *given]
        own = bind(owner, own)
    else:
        found = class_lookup(owner.cls, name)
        if isinstance(found, FunctionV) and not _registers(owner, value):
            own, given = found.setter, [owner, value]
        elif isinstance(found, Instance) and class_lookup(found.cls, "__set__") is not None:
            own, given = bind(found, class_lookup(found.cls, "__set__")), [owner, value]
    if own is None:
        return False
    call = Call(given, {}, run.place(frame, node), [None for _ in given], {})
    run.python.call(run, frame, own, call, node)
    return True


def delete(owner: Value, name: str) -> None:
    """`del owner.name`."""
    if isinstance(owner, Instance):
        modules.remove_member(owner, name)


def note_device(run: Run, value: Value) -> None:
    """Remember that the file names a device."""
    if isinstance(value, str) and is_device_text(value):
        run.devices.add("cpu" if value.startswith("cpu") else "accelerator")


def is_device_text(value: Value) -> bool:
    """`"cuda"`, `"cuda:0"`, `"mps"`, `"cpu"`, ..."""
    return isinstance(value, str) and value.partition(":")[0] in (
        "cuda",
        "mps",
        "xpu",
        "cpu",
        "npu",
        "hpu",
        "xla",
    )


def statement_value(run: Run, frame: Frame, value: Value, node: ast.Expr) -> None:
    """A value that a statement throws away."""
    if isinstance(value, ContextV) and value.mode in ("no_grad", "inference_mode"):
        run.marks.bare_no_grad = run.place(frame, node)
