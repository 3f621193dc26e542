"""Attributes and methods of tensors that are not ops of the table."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import cast

from gradguard.engine.autograd import layout, machine
from gradguard.engine.autograd.backward import backward, check_root
from gradguard.engine.dispatch import shapes, torchcalls
from gradguard.engine.domain import spelling, strides
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.events import RefusedWrite, WriteFact
from gradguard.engine.domain.tensors import Place, Tensor, both
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    BuiltinMethod,
    Frame,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models import creation, hooks
from gradguard.engine.observe import copies, graphs, reads
from gradguard.engine.observe.lending import lend
from gradguard.engine.state.run import Run

Handler = Callable[[Run, Frame, Tensor, Call, ast.AST], Value]


def attribute(run: Run, frame: Frame, owner: Tensor, name: str, node: ast.AST) -> Value:
    """`tensor.name`."""
    if owner.attributes is not None and name in owner.attributes:
        return cast("Value", owner.attributes[name])
    if name == "data":
        made = machine.share(run, owner, run.place(frame, node), "data_attr", counter=False)
        made.cuts = graphs.cut_off(run, (owner,), run.place(frame, node), "data", spelling.source_text(node))
        return made
    if name == "grad":
        return _grad(run, frame, owner, node)
    if name == "requires_grad":
        needs = machine.requires_grad(run, owner)
        return _asked(Sym(("rg", owner.number), "bool"), owner) if needs is None else needs
    if name == "shape":
        return _shape(run, owner)
    if name == "is_leaf":
        return Sym(("leaf", owner.number), "bool") if owner.leaf is None else owner.leaf
    if name == "grad_fn":
        return None if owner.requires_grad is False else run.fresh()
    if name == "dtype":
        return TorchName(f"torch.{owner.dtype}") if owner.dtype else Sym(("dtype", owner.number), "dtype")
    if name == "device":
        return Sym(("device", owner.number, owner.device), "device")
    if name in ("is_cuda", "is_cpu") and owner.device == "cpu":
        return name == "is_cpu"
    if name in (
        "ndim",
        "itemsize",
        "nbytes",
        "_version",
        "layout",
        "is_cuda",
        "is_cpu",
        "names",
        "is_sparse",
        "is_quantized",
    ):
        if name == "ndim" and owner.shape is not None:
            return len(owner.shape)
        return Sym((name, owner.number), "int" if name != "layout" else "any")
    if name == "_base":
        return owner.base
    if name == "real" and owner.dtype is not None and not owner.dtype.startswith("complex"):
        return owner
    if (
        name in ("mT", "H", "mH")
        and owner.shape == ()
        and not (owner.dtype or "complex").startswith("complex")
    ):
        # Without dimensions there is nothing to transpose: torch hands the tensor back.
        return owner
    if name in ("T", "mT", "H", "mH", "real", "imag"):
        call = Call([owner], {}, run.place(frame, node), [getattr(node, "value", None)], {})
        for spelled in (f"Tensor.{name}", {"T": "Tensor.t", "mT": "Tensor.adjoint"}.get(name, "")):
            result = torchcalls.call_op(run, frame, spelled, call, node)
            if result is not MISSING:
                return result
        view = machine.make_view(run, owner, name, run.place(frame, node))
        layout.view(f"Tensor.{name}", view, {}, owner)
        return view
    return BuiltinMethod(owner, name)


def _grad(run: Run, frame: Frame, owner: Tensor, node: ast.AST) -> Value:
    run.reads_gradient()
    # A script that has not called backward has no gradients; before a function runs there may have been one.
    inside = run.frames[0].function is not None
    if owner.grad is None and (owner.requires_grad is not True or not owner.sure or inside):
        if owner.requires_grad is not False and not run.backwards:
            made = run.tensor(run.place(frame, node))
            made.source = "grad"
            made.grad_owner = owner
            made.sure = False
            owner.grad = made
    if owner.grad is None and run.backwards and owner.parameter:
        made = run.tensor(run.place(frame, node))
        made.source, made.grad_owner = "grad", owner
        made.sure = False
        owner.grad = made
    return cast("Value", owner.grad)


def _shape(run: Run, owner: Tensor) -> Value:
    if owner.shape is None:
        return Sym(("shape", owner.number), "any", data=True)
    return TupleV(
        tuple(
            s if isinstance(s, int) else Sym(("shape", owner.number, i), "int")
            for i, s in enumerate(owner.shape)
        )
    )


def set_attribute(
    run: Run, frame: Frame, owner: Tensor, name: str, value: Value, node: ast.AST, *, augmented: bool = False
) -> None:
    """`tensor.name = value`."""
    run.trail.act()
    if name == "data" and not augmented:
        assign_data(run, frame, owner, value, node)
    elif name == "grad":
        owner.grad = value.tensor if isinstance(value, Sym) and value.tensor is not None else value
        if isinstance(owner.grad, Tensor):
            owner.grad.grad_owner = owner
        else:
            run.cleared.add(owner.number)
    elif name == "requires_grad":
        _set_requires(owner, value, run.place(frame, node))
    elif name != "data":
        if owner.attributes is None:
            owner.attributes = {}
        owner.attributes[name] = value


def assign_data(run: Run, frame: Frame, owner: Tensor, value: Value, node: ast.AST) -> None:
    """`p.data = new`: other memory for the same tensor, behind the version counter's back.

    A node that kept the tensor object itself now sees the new numbers; one that kept a view still has the old.
    """
    given = value.tensor if isinstance(value, Sym) else value
    if isinstance(given, Tensor):
        _lies_as(owner, given)
        owner.dtype, owner.device = given.dtype, given.device
    if isinstance(given, Tensor) and given.inference is not owner.inference:
        # It then is partly the one, partly the other: `is_inference()` follows the new tensor, its counter does not.
        owner.inference = None
    lend(run, (owner, given) if isinstance(given, Tensor) and given.memory is not owner.memory else ())
    if isinstance(given, Tensor) and (given.memory is owner.memory or _twin(given, owner)):
        return
    machine.write_unseen(run, run.place(frame, run.statement or node), owner, ".data =", "data", node)


def _lies_as(owner: Tensor, given: Tensor) -> None:
    """It lies where another tensor lies, which need not be where its views and those who kept it still are."""
    owner.shape, owner.strides, owner.offset = given.shape, given.strides, None
    owner.contiguous, owner.expanded = given.contiguous, given.expanded


def _twin(given: Tensor, owner: Tensor) -> bool:
    """Whether a tensor is an unchanged copy of what another one holds now."""
    if given.copied is None or given.memory.writes or given.dtype != owner.dtype:
        return False
    source, mark = given.copied
    return source is owner.elements and len(owner.memory.writes) == mark


def _set_requires(owner: Tensor, value: Value, place: Place) -> None:
    flag = known_truth(value)
    if flag is True and owner.requires_grad is False:
        owner.flagged = place
    owner.requires_grad = flag if owner.dtype not in machine.NOT_DIFFERENTIABLE else False
    if flag is False and owner.leaf is not True:
        owner.node, owner.leaf = None, True
    elif owner.leaf is None and owner.node is None:
        owner.leaf = True
    if not owner.view_sure and owner.base is not None and owner.base.requires_grad is False:
        # It may be that tensor itself.
        owner.base.requires_grad = None if flag is not False else False


def is_modelled(name: str) -> bool:
    """Whether a method does what the op table does not tell."""
    return name in _METHODS


def method(run: Run, frame: Frame, owner: Tensor, name: str, call: Call, node: ast.AST) -> Value:
    """`tensor.name(...)`."""
    handler = _METHODS.get(name)
    if handler is not None:
        return handler(run, frame, owner, call, node)
    if name == "set_":
        # The memory of another tensor, or of a storage that somebody holds: whose it is from now on is not followed.
        lend(run, (owner, *call.args, *call.kwargs.values()))
    receiver = (
        node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    )
    full = Call(
        [owner, *call.args],
        call.kwargs,
        call.place,
        [receiver, *call.exprs],
        call.kwexprs,
        open_args=call.open_args,
    )
    made = torchcalls.call_op(run, frame, f"Tensor.{name}", full, node)
    if made is not MISSING:
        if name == "set_":
            given = next(iter(call.args), None)
            if isinstance(given, Tensor):
                _lies_as(owner, given)
            else:
                owner.shape = owner.strides = owner.offset = owner.contiguous = owner.expanded = None
        return made
    if name.endswith("_") and not name.startswith("_"):
        # The table has all of torch's; whatever this is, it is no tensor, though it was used as one.
        return run.fresh()
    return torchcalls.unknown_op(run, full, name, view=True)


def _detach(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    made = machine.share(run, owner, call.place, "detach", counter=True)
    made.cuts = graphs.cut_off(run, (owner,), call.place, "detach", spelling.source_text(node))
    return made


def _detach_(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    if run.modes.inference and not owner.inference:
        # What would cut it off is code of autograd, which does not run then.
        return owner
    if owner.base is not None and not owner.inference:
        sure = owner.view_sure and owner.alias_sure and owner.sure and owner.inference is False
        receiver = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        )
        text = spelling.source_text(receiver) or owner.bound_name
        fact = WriteFact("detach_", call.place, text, "op", True, run.statement)
        run.emit(RefusedWrite(call.place, sure or None, "detached-view", fact, owner.created, owner.view_op))
        return owner
    owner.node, owner.requires_grad, owner.leaf = None, False, True
    if owner.grad_owner is not None:
        run.cleared.add(owner.grad_owner.number)
    return owner


def _requires_grad_(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    _set_requires(owner, call.get(0, "requires_grad", True), call.place)
    return owner


def _backward(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    place = call.place
    retain = call.get(1, "retain_graph")
    create = known_truth(call.get(2, "create_graph", False))
    inputs = call.kwargs.get("inputs")
    give_history(run, owner)
    check_root(run, owner, place)
    keep = create if retain is None else known_truth(retain)
    leaves = backward(
        run,
        [owner],
        place,
        retain=keep,
        inputs=tensors_in(inputs) if inputs is not None else None,
        create=create,
    )
    if create is True:
        run.doubled.append((place, spelling.source_text(node), leaves))
    return None


def give_history(run: Run, root: Tensor) -> None:
    """Nobody differentiates a tensor without history: one of unknown make has the graph of an unknown network.

    Whether it is a new graph each time cannot be told, so that a second backward through it is no mistake.
    """
    if root.requires_grad is not None:
        return
    root.requires_grad = True
    root.leaf = False
    if root.node is None:
        root.node = machine.record(
            run, root.bound_name or "loss", root.created, (), certain=False, frees=False
        )
        root.node.opaque = root.node.likely = True


def _item(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    name = call.name
    read = reads.host_read(run, frame, node, name, owner, implicit=False)
    made = Sym(("item", owner.number, owner.counter.value), "number" if name == "item" else "any", data=True)
    made.reading = read
    made.cuts = graphs.cut_off(run, (owner,), call.place, name, spelling.source_text(node))
    return made


def _numpy(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    reads.to_numpy(run, frame, node, owner, implicit=False)
    return ArrayV(owner, owner.dtype)


def _size(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    dim = call.get(0, "dim")
    if dim is None:
        return _shape(run, owner)
    if owner.shape is not None and isinstance(dim, int) and -len(owner.shape) <= dim < len(owner.shape):
        size = owner.shape[dim]
        if isinstance(size, int):
            return size
    return Sym(("shape", owner.number, dim if isinstance(dim, int) else 0), "int")


def _of_a_mapping(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """`batch.items()`: tensors have no such method, so it is a mapping that is also used as a tensor (a TensorDict)."""
    return run.fresh()


def _number(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    name = call.name
    if name in ("dim", "ndimension") and owner.shape is not None:
        return len(owner.shape)
    total = strides.product(owner.shape) if name in ("numel", "nelement") else None
    return total if total is not None else Sym((name, owner.number), "int")


def _floats(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """`x.is_floating_point()`; whichever way a program goes for it, an integer asks no gradient."""
    if owner.dtype is not None:
        return "float" in owner.dtype
    return _asked(Sym((call.name, owner.number), "bool"), owner)


def _asked(condition: Sym, owner: Tensor) -> Sym:
    condition.trains = owner
    return condition


def _bytes(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """The memory itself, or where it is."""
    owner.memory.held = True
    return Sym((call.name, owner.number), "int" if call.name == "data_ptr" else "any")


def _hook(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:

    return hooks.tensor_hook(run, frame, owner, call, node)


def _resize(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """Another size in the same memory; torch refuses it on what requires grad. The same size is no write."""
    given = call.get(0, "sizes", call.kwargs.get("other"))
    if isinstance(given, int):
        given = TupleV(tuple(call.args))
    asked = given.shape if isinstance(given, Tensor) else layout.sizes_of(given)
    if asked is not None and None not in asked and asked == owner.shape:
        return owner
    sure = asked is not None and owner.shape is not None and None not in (*asked, *owner.shape)
    machine.write(run, owner, call.place, call.name, checked=False, certain=sure)
    owner.shape, owner.strides = asked, None
    return owner


def _shared(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """Other processes may see the memory from now on."""
    owner.memory.held = True
    return owner


def _pinned(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    owner.pageable = None
    return owner


def _retain(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    owner.retains_grad = True
    return None


def _new(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:

    return creation.new_like(run, frame, owner, call, node)


def _is_flag(value: Value) -> bool:
    return isinstance(value, bool) or (isinstance(value, Sym) and value.kind == "bool")


def _to(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """`to`, `cuda`, `cpu`, ...: the same tensor where nothing changes, else a copy with history."""
    name = call.name
    values: dict[str, Value] = {"self": owner, "memory_format": call.kwargs.get("memory_format")}
    # By position `non_blocking`, then `copy`.
    flags = [value for value in call.args if _is_flag(value)]
    named = [value for key, value in call.kwargs.items() if key != "memory_format"]
    for value in (*call.args, *named):
        if _is_flag(value):
            continue
        if (isinstance(value, TorchName) and shapes.is_dtype(value.path)) or (
            isinstance(value, Sym) and value.kind == "dtype"
        ):
            values["dtype"] = value
        elif isinstance(value, Tensor):
            values["other"] = value
        elif isinstance(value, float):
            # Taken for a tensor to be like: one of a Python number.
            values["dtype"] = TorchName("torch.float64")
        elif isinstance(value, (str, TorchName)) and name == "type":
            values["dtype"] = shapes.of_type(value if isinstance(value, str) else value.path)
        elif isinstance(value, (str, Sym, int)):
            values["device"] = value
    if name == "cuda":
        values["device"] = "cuda"
    elif name == "cpu":
        values["device"] = "cpu"
        reads.host_read(run, frame, node, "cpu", owner, implicit=False)
    if "device" in values or "other" in values:
        copies.moved(run, call, node, owner, values.get("other", values.get("device")))
    copied = known_truth(call.kwargs.get("copy", flags[1] if len(flags) > 1 else False))
    method_name = f"Tensor.{name}"
    same = both(
        shapes.memory_fact("same_dtype", owner, values, method_name),
        shapes.memory_fact("same_device", owner, values, method_name),
    )
    same = both(same, layout.said_to_lie_as(owner, values["memory_format"]))
    if same is True and copied is False:
        return owner
    dtype = shapes.dtype_of(values.get("dtype")) or shapes.cast_target(name)
    other = values.get("other")
    if isinstance(other, Tensor):
        dtype = other.dtype
    elif dtype is None and values.get("dtype") is None:
        dtype = owner.dtype
    made: Tensor
    if same is None and copied is False:
        made = machine.make_view(run, owner, name, call.place, sure=False)
        made.contiguous = owner.contiguous
    else:
        made = run.tensor(call.place)
        needs = machine.requires(run, (owner,)) if dtype not in machine.NOT_DIFFERENTIABLE else False
        if needs is not False:
            made.node = machine.record(run, name, call.place, (owner,), certain=needs is True)
            made.requires_grad, made.leaf = needs, False if needs else None
    made.shape, made.strides, made.contiguous = owner.shape, owner.strides, owner.contiguous
    if values["memory_format"] is not None and made.base is None:
        layout.in_format(made, values["memory_format"])
    if owner.expanded is not False:
        # A copy of overlapping memory lies row by row.
        made.strides, made.expanded = None, None if made.base is not None else False
    made.sure = owner.sure
    made.source = owner.source
    made.cuts = owner.cuts
    made.dtype = dtype
    made.device = _target_device(run, values, owner)
    return made


def _target_device(run: Run, values: dict[str, Value], owner: Tensor) -> str | None:
    device = values.get("device")
    other = values.get("other")
    if isinstance(other, Tensor):
        return other.device
    if device is None:
        return owner.device
    if isinstance(device, str):
        return "cpu" if device.startswith("cpu") else "accelerator"
    # A device that is computed at run time is an accelerator where there is one.
    return "accelerator"


_METHODS: dict[str, Handler] = {
    "detach": _detach,
    "detach_": _detach_,
    "requires_grad_": _requires_grad_,
    "backward": _backward,
    "item": _item,
    "tolist": _item,
    "numpy": _numpy,
    "__array__": _numpy,
    "size": _size,
    "dim": _number,
    "ndimension": _number,
    "numel": _number,
    "nelement": _number,
    "element_size": _number,
    "data_ptr": _bytes,
    "untyped_storage": _bytes,
    "storage": _bytes,
    "stride": _number,
    "is_contiguous": _number,
    "get_device": _number,
    "storage_offset": _number,
    "is_floating_point": _floats,
    "type": _to,
    "register_hook": _hook,
    "register_post_accumulate_grad_hook": _hook,
    "retain_grad": _retain,
    "items": _of_a_mapping,
    "keys": _of_a_mapping,
    "pin_memory": _pinned,
    "resize_": _resize,
    "resize_as_": _resize,
    "share_memory_": _shared,
    "new_zeros": _new,
    "new_ones": _new,
    "new_empty": _new,
    "new_full": _new,
    "new_tensor": _new,
    "to": _to,
    "cuda": _to,
    "cpu": _to,
    "xpu": _to,
}
for _cast in (*shapes.CASTS, "type_as"):
    _METHODS[_cast] = _to
