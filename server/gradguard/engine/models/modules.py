"""`torch.nn.Module`: parameters, children, modes, hooks and the call itself."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import machine
from gradguard.engine.dispatch import apply, binding, torchcalls
from gradguard.engine.dispatch.binding import Bound
from gradguard.engine.domain import classes, spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import canonical_class
from gradguard.engine.domain.modules import paths_of, registered
from gradguard.engine.domain.tensors import Memory, Place, Tensor, either
from gradguard.engine.domain.values import (
    MISSING,
    BuiltinMethod,
    DictV,
    External,
    Frame,
    Instance,
    ListV,
    NativeV,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models import collectives, hooks, optim, others, stores
from gradguard.engine.models.opaque import opaque
from gradguard.engine.models.registry import Registry
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.coerce import constant
from gradguard.engine.state.notes import ModuleCall, Rewritten
from gradguard.engine.state.run import Run
from gradguard.ops.model import Form, ModuleRow, Op, Param

MODELS = Registry()

AN_OP = 40
"""Units of work that an operation on tensors takes which no node of the program asks for."""
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")


def is_module_class(path: str) -> bool:
    """Whether a torch name is a class of `torch.nn`."""
    if not path.startswith("torch.nn.") or path.startswith(
        ("torch.nn.functional", "torch.nn.init", "torch.nn.utils")
    ):
        return False
    return path.rpartition(".")[2][:1].isupper()


def make(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Instance:
    """An object of a class of `torch.nn`."""
    path = canonical_class(path)
    made = Instance(TorchName(path), made=call.place)
    fill(run, made, path, call)
    return made


def fill(run: Run, made: Instance, path: str, call: Call) -> None:
    """Attributes, parameters and buffers that the constructor of `path` makes."""
    name = path.rpartition(".")[2]
    if name in _CONTAINERS:
        _fill_container(run, made, name, call)
        return
    row = run.table.module(path)
    if row is None:
        made.attributes["__opaque__"] = True
        return
    bound = _bind_init(row.init, call)
    for key, value in bound.values.items():
        plain = key.removeprefix("=")
        if plain not in row.absent and plain not in made.attributes:
            made.attributes[plain] = value
    for key, value in row.extra:
        made.attributes.setdefault(key, constant(value))
    for key, when in row.parameters:
        exists = binding.holds(run, when, bound)
        made.attributes[key] = None if exists is False else new_parameter(run, call.place, key)
    for key, when in row.buffers:
        exists = binding.holds(run, when, bound)
        if exists is False:
            made.attributes[key] = None
        else:
            buffer = run.tensor(call.place)
            buffer.bound_name, buffer.device = key, "cpu"
            made.attributes[key] = buffer


def _bind_init(params: tuple[Param, ...], call: Call) -> Bound:
    bound = Bound({}, {}, set())
    positional = [param for param in params if not param.keyword_only]
    for index, param in enumerate(positional):
        if index < len(call.args):
            bound.values[param.name] = call.args[index]
            bound.given.add(param.name)
    for param in params:
        if param.name in call.kwargs:
            bound.values[param.name] = call.kwargs[param.name]
        elif param.name not in bound.values and param.default is not None:
            bound.values["=" + param.name] = constant(param.default)
    return bound


def new_parameter(run: Run, place: Place, name: str) -> Tensor:
    """A parameter of a torch module."""
    made = run.tensor(place)
    made.parameter = True
    made.requires_grad = True
    made.dtype, made.device = "float32", "cpu"
    made.source = "parameter"
    made.bound_name = name
    return made


def _fill_container(run: Run, made: Instance, name: str, call: Call) -> None:
    children: ListV | DictV
    first = call.args[0] if call.args else call.kwargs.get("modules")
    if name.startswith("Parameter"):
        first = _as_parameters(run, first, call.place)
    if name == "Sequential":
        if len(call.args) == 1 and isinstance(first, DictV):
            children = ListV([value for _, value in first.items.values()], open=first.open)
            for key, value in first.items.values():
                if isinstance(key, str):
                    made.attributes[key] = value
        else:
            children = ListV(list(call.args), open=call.open_args)
    elif name in ("ModuleDict", "ParameterDict"):
        children = (
            DictV(dict(first.items), open=first.open)
            if isinstance(first, DictV)
            else DictV(open=first is not None)
        )
    elif isinstance(first, (ListV, TupleV)):
        children = ListV(list(first.items), open=first.open)
    else:
        children = ListV(open=first is not None)
    made.attributes["__children__"] = children


def _as_parameters(run: Run, given: Value, place: Place) -> Value:
    """What `ParameterList` and `ParameterDict` make of tensors that are no parameters."""
    if isinstance(given, DictV):
        items = {key: (name, _as_parameter(run, value, place)) for key, (name, value) in given.items.items()}
        return DictV(items, open=given.open)
    if isinstance(given, (ListV, TupleV)):
        return ListV([_as_parameter(run, value, place) for value in given.items], open=given.open)
    return given


def _as_parameter(run: Run, value: Value, place: Place) -> Value:
    if not isinstance(value, Tensor) or value.parameter:
        return value
    made = machine.share(run, value, place, "parameter", counter=True)
    made.parameter = made.requires_grad = made.leaf = True
    made.cuts, made.created, made.source = value.cuts, place, "parameter"
    return made


def init(run: Run, frame: Frame, made: Instance, call: Call, node: ast.AST) -> None:
    """`super().__init__(...)` reaching a class of torch."""
    for base in classes.linear(made.cls):
        if isinstance(base, TorchName):
            if base.path == "torch.nn.Module":
                return
            if is_module_class(base.path):
                fill(run, made, base.path, call)
                return
            if optim.is_optimizer(base.path) or base.path == "torch.optim.Optimizer":
                optim.fill(run, frame, made, call, node)
                return
        elif classes.holds(base):
            stores.fill(run, frame, made, call, node)
            return
        elif isinstance(base, External):
            others.escaped(run, call, node)  # as `class Rows(list)` does


def attribute(run: Run, owner: Instance, name: str) -> Value:
    """Attributes every module has."""
    if name == "training":
        return owner.training
    if name == "device":
        return run.fresh("device")
    if name in ("_parameters", "_modules", "_buffers"):
        return registered(owner, name)
    children = owner.attributes.get("__children__")
    if isinstance(children, DictV) and name in children.items:
        return children.items[name][1]
    if isinstance(children, ListV) and name.isdigit() and int(name) < len(children.items):
        return children.items[int(name)]
    if name in ("forward", "__call__"):
        return BuiltinMethod(owner, name)
    return MISSING


def call_module(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`module(...)`: pre-hooks, forward, hooks."""
    if module.hooks:
        call = hooks.before_forward(run, frame, module, call, node)
    forward = module.attributes.get("forward") or classes.class_lookup(module.cls, "forward")
    run.compiled += module.compiled
    for loop in run.loops:
        loop.calls = loop.calls or loop.depth == run.depth
    first = len(run.nodes)
    inputs = [t for value in (*call.args, *call.kwargs.values()) for t in tensors_in(value)]
    versions = [t.counter.value for t in inputs]
    run.depth += 1
    mark = run.pend(hooks.seen_again(module, call), past=True)
    try:
        if forward is not None:
            result = call_value(run, frame, classes.bind(module, forward), call, node)
        else:
            result = forward_base(run, frame, module, call, node)
    finally:
        del run.pending[mark:]
        run.depth -= 1
        run.compiled -= module.compiled
    _note_rewrites(run, inputs, versions, result, call, node)
    # Layers that are tried out while a network is made tell their sizes; that happens once.
    tried = bool(run.loops) and run.makes(run.loops[-1].functions)
    if run.depth == 0 and run.loops and not tried and run.modes.grad is not False:
        fed = either(*[machine.requires_grad(run, t) for t in inputs])
        noted = ModuleCall(
            call.place,
            module,
            first,
            len(run.nodes),
            module.training,
            fed,
            tuple(loop for loop in run.loops if loop.frame is None or loop.frame in run.frames),
            _caller(run),
            spelling.source_text(node),
        )
        run.module_calls.append(noted)
    if module.hooks:
        result = hooks.after_forward(run, frame, module, call, result, node)
        if any(hook.kind != "backward" for hook in module.hooks):
            _shown_to_hooks(run, first, call, node)
    return result


def _caller(run: Run) -> Place | None:
    """The call, in the function of the innermost loop, that led here through further functions."""
    loop = run.loops[-1]
    if loop.frame is None or loop.frame not in run.frames:
        return None
    above = run.frames[run.frames.index(loop.frame) + 1 :]
    return above[0].site if above else None


def _shown_to_hooks(run: Run, first: int, call: Call, node: ast.AST) -> None:
    """What hooks were given cannot be another tensor than the one that the caller has."""
    run.work(len(run.nodes) - first)
    for recorded in run.nodes[first:]:
        for saved in recorded.saved:
            if saved.expr is node or saved.expr in call.exprs or saved.expr in call.kwexprs.values():
                saved.expr = None


def _note_rewrites(
    run: Run, inputs: list[Tensor], versions: list[int], result: Value, call: Call, node: ast.AST
) -> None:
    """Inputs that the module wrote in place and did not hand back."""
    handed: set[Memory] | None = None
    for tensor, version in zip(inputs, versions):
        if tensor.counter.value == version:
            continue
        if handed is None:
            handed = {one.memory for one in tensors_in(result)}
        run.work(len(tensor.counter.writes))
        writes = [
            w
            for w in tensor.counter.writes
            if w.after > version and w.op.strip("_") not in apply.INPLACE_VIEWS
        ]
        if not writes or tensor.memory in handed:
            continue
        last = writes[-1]
        if last.kind == "op":
            name = tensor.bound_name or spelling.source_text(call.expr(0))
            run.rewritten[tensor.number] = Rewritten(call.place, last, name, run.depth, tensor.counter.value)


def forward_base(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """The forward of torch's own class: by its row, its children, or as an unknown network."""
    path = next((base.path for base in classes.linear(module.cls) if isinstance(base, TorchName)), "")
    name = path.rpartition(".")[2]
    children = module.attributes.get("__children__")
    if name == "Sequential" and isinstance(children, ListV):
        value = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
        run.work(AN_OP * len(children.items))
        for child in list(children.items):
            expr = call.exprs[0] if call.exprs else None
            value = call_value(run, frame, child, Call([value], {}, call.place, [expr], {}), node)
        return (
            opaque(run, [value], call.place, module, node) if children.open and not children.items else value
        )
    row = run.table.module(path)
    if row is None or not row.forms:
        return opaque(run, [*call.args, *call.kwargs.values()], call.place, module, node)
    op = Op(path, forms=row.forms)
    chosen = binding.choose(run, op, call, module=module)
    if chosen is None:
        return opaque(run, [*call.args, *call.kwargs.values()], call.place, module, node)
    form, bound = chosen
    _attribute_defaults(row, form, bound, module)
    result = apply.apply(run, op, form, bound, call.place, name=name)
    if name == "LSTM" and isinstance(result, TupleV) and len(result.items) == 2:
        return TupleV((result.items[0], TupleV((result.items[1], _like(run, result.items[1], call.place)))))
    return result


def _like(run: Run, one: Value, place: Place) -> Value:
    """A second result of the same node, as the cell state beside the hidden state."""
    if not isinstance(one, Tensor):
        return one
    made = run.tensor(place)
    made.node, made.requires_grad, made.leaf = one.node, one.requires_grad, one.leaf
    made.dtype, made.device, made.likely, made.contiguous = one.dtype, one.device, one.likely, one.contiguous
    return made


def _attribute_defaults(row: ModuleRow, form: Form, bound: Bound, module: Instance) -> None:
    """Conditions may name constructor arguments that the object does not keep under that name."""
    for param in row.init:
        if param.default is not None and param.name not in module.attributes:
            module.attributes.setdefault(param.name, constant(param.default))


@MODELS.torch_function("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.DataParallel", "torch.optim.swa_utils.AveragedModel")  # fmt: skip
def _wrapped(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A wrapper is called like the module it holds."""
    module = call.get(0, "module")
    if isinstance(module, Instance):
        made = Instance(TorchName("torch.nn.DataParallel"), made=call.place)
        made.attributes["module"] = module
        sends = call.name == "DistributedDataParallel" and collectives.sends_buffers(call)
        known = set(collectives.buffers_of(module)) if sends else set()

        def forward(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
            if sends:
                collectives.send_buffers(run, call.place, module, known)
            return call_module(run, frame, module, call, node)

        made.attributes["forward"] = NativeV(forward)
        return made
    return module


@MODELS.torch_function("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _functional_call(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Calls the module with other tensors in the place of its parameters."""
    module, given, args = (
        call.get(0, "module"),
        call.get(1, "parameter_and_buffer_dicts"),
        call.get(2, "args"),
    )
    if not isinstance(module, Instance):
        return run.fresh()
    passed: list[Value] = [*args.items] if isinstance(args, TupleV) else [] if args is None else [args]
    dicts = (
        [given]
        if isinstance(given, DictV)
        else list(given.items)
        if isinstance(given, (TupleV, ListV))
        else []
    )
    replaced: list[tuple[Instance, str, Value]] = []
    homes = {f"{prefix}{key}": (one, key) for prefix, one in paths_of(module) for key in list(one.attributes)}
    for one in dicts:
        for name, value in one.items.values() if isinstance(one, DictV) else ():
            home = homes.get(name) if isinstance(name, str) else None
            if home is not None:
                replaced.append((home[0], home[1], home[0].attributes[home[1]]))
                home[0].attributes[home[1]] = value
    try:
        inner = Call(passed, {}, call.place, [None for _ in passed], {})
        return call_module(run, frame, module, inner, node)
    finally:
        for owner, key, value in reversed(replaced):
            owner.attributes[key] = value


@MODELS.torch_function("torch.nn.utils.parameters_to_vector")
def _to_vector(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return torchcalls.unknown_op(run, call, "parameters_to_vector")


@MODELS.torch_function("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.parametrizations.spectral_norm", "torch.nn.utils.parametrizations.weight_norm", "torch.nn.SyncBatchNorm.convert_sync_batchnorm")  # fmt: skip
def _reparametrised(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return call.get(0, "module")
