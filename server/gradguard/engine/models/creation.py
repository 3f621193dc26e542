"""Making tensors: factories, wrapping numbers and arrays, parameters."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import layout, machine
from gradguard.engine.dispatch import shapes, torchcalls
from gradguard.engine.domain import spelling, strides
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.keys import root
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    Frame,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import copies, graphs, reads
from gradguard.engine.observe.lending import lend
from gradguard.engine.python.attributes import note_device
from gradguard.engine.state.coerce import number
from gradguard.engine.state.run import Run

MODELS = Registry()

_SIZED = ("zeros", "ones", "empty", "rand", "randn", "full", "randint", "empty_strided")
_INTEGER = ("randint", "arange", "randperm", "tril_indices", "triu_indices")


def options(run: Run, made: Tensor, call: Call) -> Tensor:
    """`dtype=`, `device=` and `requires_grad=` of a factory."""
    dtype = call.kwargs.get("dtype")
    if dtype is not None:
        made.dtype = shapes.dtype_of(dtype)
    device = call.kwargs.get("device")
    if device is None:
        made.device = "cpu" if made.device is None else made.device
    elif isinstance(device, str):
        made.device = "cpu" if device.startswith("cpu") else "accelerator"
    elif isinstance(device, Sym):
        known = root(device.key)
        of_tensor = known[0] == "device" and isinstance(known[1], int)
        made.device = None if of_tensor else "accelerator"
    flag = call.kwargs.get("requires_grad", False)
    made.requires_grad = known_truth(flag)
    if device is None:
        made.pageable = copies.pinned_said(call)
    return made


def _of_size(made: Tensor, call: Call) -> Tensor:
    """`torch.zeros(3)` could have been made on a device."""
    made.made_of = "size" if call.kwargs.get("device") is None and made.device == "cpu" else ""
    return made


def _sized(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    made = run.tensor(call.place)
    made.dtype = "int64" if name in _INTEGER else "float32"
    args = call.args
    if name == "randint":
        args = [a for a in args if isinstance(a, (TupleV, ListV))] or [None]
    elif name == "full":
        args = [call.get(0, "size")]
        fill = call.get(1, "fill_value")
        made.dtype = "bool" if isinstance(fill, bool) else "int64" if isinstance(fill, int) else "float32"
        if isinstance(fill, Tensor):
            reads.host_read(run, frame, node, "size", fill, implicit=True)
    size = call.kwargs.get("size", args[0] if len(args) == 1 else TupleV(tuple(args)))
    layout.fresh(made, _sizes(size), [])
    for tensor in tensors_in(size):
        reads.host_read(run, frame, node, "size", tensor, implicit=True)
    for each in size.items if isinstance(size, (TupleV, ListV)) else ():
        number(each)
    return _of_size(options(run, made, call), call)


def _sizes(size: Value) -> tuple[object, ...] | None:
    if isinstance(size, bool) or (isinstance(size, (ListV, TupleV)) and size.open):
        return None
    return layout.sizes_of(size)


MODELS.torch_function(*(f"torch.{name}" for name in _SIZED))(_sized)


@MODELS.torch_function("torch.arange", "torch.range", "torch.linspace", "torch.logspace", "torch.randperm", "torch.eye", "torch.hann_window", "torch.tril_indices", "torch.triu_indices", "torch.hamming_window", "torch.bartlett_window", "torch.blackman_window", "torch.kaiser_window")  # fmt: skip
def _counted(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    made = run.tensor(call.place)
    made.dtype = "float32"
    if name in _INTEGER:
        made.dtype = (
            "int64" if all(isinstance(a, int) for a in call.args) else None if name == "arange" else "int64"
        )
        if any(isinstance(a, float) for a in call.args):
            made.dtype = "float32"
    made.shape = (None, None) if name in ("eye", "tril_indices", "triu_indices") else (None,)
    if name == "eye" and call.args and all(isinstance(a, int) for a in call.args):
        layout.fresh(made, (call.args[0], call.args[-1]), [])
    if name == "arange" and len(call.args) == 1 and isinstance(call.args[0], int):
        layout.fresh(made, (call.args[0],), [])
    for value in call.args:
        number(value)
        for tensor in tensors_in(value):
            reads.host_read(run, frame, node, "size", tensor, implicit=True)
    return _of_size(options(run, made, call), call)


@MODELS.torch_function("torch.zeros_like", "torch.ones_like", "torch.empty_like", "torch.rand_like", "torch.randn_like", "torch.full_like", "torch.randint_like")  # fmt: skip
def _like(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = call.get(0, "input")
    made = run.tensor(call.place)
    tensor = source.tensor if isinstance(source, Sym) else source
    if isinstance(tensor, Tensor):
        made.dtype, made.device = tensor.dtype, tensor.device
        layout.fresh(made, tensor.shape, [tensor])
    elif isinstance(source, Sym):
        made.device = None
    device, made.device = made.device, None
    options(run, made, call)
    if call.kwargs.get("device") is None:
        made.device = device
    return made


def new_like(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """`x.new_zeros(...)`: dtype and device of `x`."""
    made = run.tensor(call.place)
    made.dtype, made.device = owner.dtype, owner.device
    made.cuts = graphs.cuts_in(run, call.get(0, "data"))
    if call.name == "new_tensor":
        like = Sym(("device", owner.number, owner.device), "device")
        copies.from_numbers(run, call, call.get(0, "data"), call.kwargs.get("device", like))
    layout.fresh(made, _sizes(call.args[0] if len(call.args) == 1 else TupleV(tuple(call.args))), [])
    if "device" in call.kwargs or "dtype" in call.kwargs or "requires_grad" in call.kwargs:
        device = made.device
        options(run, made, call)
        if "device" not in call.kwargs:
            made.device = device
    return made


@MODELS.torch_function("torch.tensor", "torch.scalar_tensor", "torch.complex_tensor")
def _tensor(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = call.get(0, "data")
    made = run.tensor(call.place)
    made.dtype, shape = _literal(source)
    layout.fresh(made, shape, [])
    cut = tensors_in(source)
    for tensor in cut:
        reads.host_read(run, frame, node, "tensor", tensor, implicit=True)
    made.cuts = graphs.cuts_in(run, source)
    if any(t.requires_grad is not False for t in cut):
        made.source = "rewrapped"
        made.cuts |= graphs.cut_off(run, cut, call.place, call.name, spelling.source_text(node))
    return _of_numbers(run, made, source, call.kwargs.get("device"), call)


def _of_numbers(run: Run, made: Tensor, data: Value, device: Value, call: Call) -> Tensor:
    """Python's numbers become a tensor of the host, which is copied where another device is asked for."""
    copies.from_numbers(run, call, data, device)
    options(run, made, call)
    made.made_of = copies.made_of(data) if made.device == "cpu" else ""
    return made


Described = tuple[str | None, tuple[object, ...] | None]
"""dtype and shape; None for what is not known."""


def _literal(value: Value, known: dict[int, Described] | None = None, depth: int = 0) -> Described:
    """What `torch.tensor` makes of a value."""
    if isinstance(value, bool):
        return "bool", ()
    if isinstance(value, int):
        return "int64", ()
    if isinstance(value, float):
        return "float32", ()
    if not isinstance(value, (ListV, TupleV)) or value.open or depth >= strides.MAX_RANK:
        return None, None
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = None, None  # while it is looked into, as what holds itself is
        known[id(value)] = _nested([_literal(item, known, depth + 1) for item in value.items])
    return known[id(value)]


def _nested(parts: list[Described]) -> Described:
    dtypes = {dtype for dtype, _ in parts}
    dtype = (
        "float32"
        if "float32" in dtypes and None not in dtypes
        else dtypes.pop()
        if len(dtypes) == 1
        else None
    )
    inner = parts[0][1] if parts else ()
    shape = (len(parts), *inner) if inner is not None else None
    return dtype or ("float32" if not parts else None), shape


@MODELS.torch_function("torch.as_tensor", "torch.asarray", "torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.DoubleTensor", "torch.IntTensor", "torch.BoolTensor", "torch.cuda.FloatTensor", "torch.cuda.LongTensor")  # fmt: skip
def _wrap(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Shares memory with a NumPy array; returns a tensor as it is."""
    name = call.name
    source = call.get(0, "data")
    if isinstance(source, Sym) and source.tensor is not None:
        source = source.tensor
    if isinstance(source, Tensor) and name in ("as_tensor", "asarray"):
        return _converted(run, frame, source, call, node)
    if isinstance(source, ArrayV):
        if source.memory_of is None:
            owner = run.tensor(call.place)
            owner.dtype = source.dtype
            source.memory_of = owner
        made = machine.share(run, source.memory_of, call.place, "numpy", counter=False)
        made.memory.numpy = True
        # What torch knew of the memory is lost on the way through NumPy.
        made.inference, made.own_counter = run.modes.inference, False
        made.from_numpy = True
        made.device = "cpu"
        made.cuts = graphs.cuts_in(run, source)
        return options(run, made, call) if call.kwargs else made
    made = run.tensor(call.place)
    made.dtype = {
        "LongTensor": "int64",
        "IntTensor": "int32",
        "BoolTensor": "bool",
        "DoubleTensor": "float64",
    }.get(name, "float32")
    if name in ("as_tensor", "asarray"):
        made.dtype, shape = _literal(source)
        layout.fresh(made, shape, [])
        made.memory.held = isinstance(source, Sym)
    elif name == "from_numpy":
        made.memory.held = True
    elif all(isinstance(a, int) for a in call.args) and name.endswith("Tensor"):
        layout.fresh(made, tuple(call.args), [])
    if any(t.requires_grad is not False for t in tensors_in(source)):
        made.source = "rewrapped"
        made.cuts = graphs.cut_off(run, tensors_in(source), call.place, call.name, spelling.source_text(node))
    if name in ("as_tensor", "asarray"):
        return _of_numbers(run, made, source, call.get(2, "device"), call)
    if isinstance(source, (ListV, TupleV)):
        made.made_of = copies.made_of(source)
    return options(run, made, call)


@MODELS.torch_function(
    "torch.frombuffer", "torch.from_file", "torch.from_dlpack", "torch.utils.dlpack.from_dlpack"
)
def _over_memory(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A tensor over memory that others hold, too."""
    made = torchcalls.call_op(run, frame, f"torch.{call.name}", call, node)
    if made is MISSING:
        made = torchcalls.unknown_op(run, call, call.name, view=True)
    lend(run, (made, *call.args, *call.kwargs.values()))
    return made


def _converted(run: Run, frame: Frame, source: Tensor, call: Call, node: ast.AST) -> Value:
    """`as_tensor(t, dtype=..., device=...)` is `t.to(...)`: the tensor itself or a recorded copy."""
    flag = call.kwargs.get("requires_grad")
    if flag is not None and known_truth(flag) is not True:
        made = machine.share(run, source, call.place, "detach", counter=True)
        made.cuts = graphs.cut_off(run, (source,), call.place, call.name, spelling.source_text(node))
        made.requires_grad = known_truth(flag)
        return made
    wanted = {"dtype": call.get(1, "dtype"), "device": call.get(2, "device"), "copy": call.kwargs.get("copy")}
    given: dict[str, Value] = {key: value for key, value in wanted.items() if value is not None}
    moved = Call([source], given, call.place, [call.expr(0, "data")], {}, "to", call.open_args)
    result = torchcalls.call_op(run, frame, "Tensor.to", moved, node)
    return torchcalls.unknown_op(run, call, call.name, view=True) if result is MISSING else result


@MODELS.torch_function(
    "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.UninitializedParameter", "torch.nn.Buffer"
)
def _parameter(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A leaf of its own that shares the memory it is given."""
    source = call.get(0, "data")
    if isinstance(source, Sym) and source.tensor is not None:
        source = source.tensor
    if isinstance(source, Tensor):
        made = machine.share(run, source, call.place, "parameter", counter=True)
        made.memory.outside = False
        made.cuts = source.cuts
    else:
        made = run.tensor(call.place)
        made.dtype = "float32"
    if call.name == "Buffer":
        return made
    made.parameter = True
    flag = known_truth(call.get(1, "requires_grad", True))
    made.requires_grad = flag
    made.leaf = True
    made.created = call.place
    made.source = "parameter"
    return made


@MODELS.torch_function("torch.autograd.Variable")
def _variable(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = call.get(0, "data")
    if isinstance(source, Sym):
        return source
    if isinstance(source, Tensor):
        made = machine.share(run, source, call.place, "variable", counter=True)
        made.cuts = source.cuts
        made.requires_grad = known_truth(call.get(1, "requires_grad", False))
        return made
    return run.tensor(call.place)


@MODELS.torch_function("torch.device")
def _device(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

    value = call.get(0, "type")
    note_device(run, value)
    if isinstance(value, str):
        return value
    return value if isinstance(value, Sym) and value.kind == "device" else run.fresh("device")


def torch_path(value: Value) -> str:
    """Path of a torch name, or empty."""
    return value.path if isinstance(value, TorchName) else ""
