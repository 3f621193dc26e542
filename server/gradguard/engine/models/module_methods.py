"""Methods of `torch.nn.Module`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradguard.engine.autograd import machine
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.modules import (
    complete,
    extent,
    modules_of,
    names,
    parameters,
)
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    DictV,
    Frame,
    FunctionV,
    Instance,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
)
from gradguard.engine.models import optim
from gradguard.engine.models.modules import forward_base, new_parameter
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import holders
from gradguard.engine.python.attributes import is_device_text
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.run import Run

MODELS = Registry()

Handler = Callable[[Run, Frame, Instance, Call, ast.AST], Value]


def _parameters(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return ListV(list(parameters(module)), open=not complete(module), kind="parameters")


def _named_parameters(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    known = names(module)
    items: list[Value] = [TupleV((known.get(p.number, "weight"), p)) for p in parameters(module)]
    if not items and not complete(module):
        items = [TupleV((run.fresh("str"), new_parameter(run, call.place, "parameter")))]
    return ListV(items, open=not complete(module), kind="parameters")


def _buffers(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    found = [
        v
        for one in modules_of(module)
        for v in one.attributes.values()
        if isinstance(v, Tensor) and not v.parameter
    ]
    if call.name.startswith("named"):
        return ListV([TupleV((tensor.bound_name, tensor)) for tensor in found])
    return ListV([*found])


def _train(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name = call.name
    mode = False if name == "eval" else call.get(0, "mode", True)
    if mode is False:
        run.marks.evaluates = True
    for one in modules_of(module):
        one.training = mode
    return module


def _same(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return module


def _compile(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`network.compile()` compiles what the network does when it is called, and gives nothing back."""
    module.compiled = True
    run.marks.functions_changed = True
    return None


def _moved(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """`.to(device)`: parameters stay the same objects."""
    target = call.args[0] if call.args else call.kwargs.get("device")
    name = call.name
    device: str | None = None
    if name == "cuda" or (isinstance(target, Sym) and target.kind in ("device", "any", "str")):
        device = "accelerator"
    elif name == "cpu":
        device = "cpu"
    elif isinstance(target, str) and is_device_text(target):
        device = "cpu" if target.startswith("cpu") else "accelerator"
    for one in modules_of(module):
        for value in one.attributes.values():
            if isinstance(value, Tensor):
                value.device = device or value.device
                if name in ("half", "bfloat16", "double") or isinstance(target, TorchName):
                    value.dtype = None
    return module


def _zero_grad(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:

    optim.clear_gradients(run, list(parameters(module)), call, node)
    return None


def _requires_grad_(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    flag = known_truth(call.get(0, "requires_grad", True))
    for parameter in parameters(module):
        parameter.requires_grad = flag
    return module


def _apply(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:

    function = call.get(0, "fn")
    if isinstance(function, FunctionV):
        for one in list(modules_of(module)):
            call_value(run, frame, function, Call([one], {}, call.place, [None], {}), node)
    return module


def _state_dict(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    known = names(module)
    keeps = known_truth(call.kwargs.get("keep_vars", False)) is not False
    items: dict[object, tuple[Value, Value]] = {}
    for one in modules_of(module):
        for value in one.attributes.values():
            if isinstance(value, Tensor):
                key = known.get(value.number, str(value.number))
                shared = value if keeps else machine.share(run, value, call.place, "state_dict", counter=True)
                items[key] = (key, shared)
    return DictV(items, open=not complete(module))


def _load_state_dict(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    """Copies into parameters and buffers; with `assign=True` it replaces them, with `strict=False` maybe some."""
    if known_truth(call.get(2, "assign", False)) is not False:
        return run.fresh()
    sure = known_truth(call.get(1, "strict", True)) is True
    held = list(parameters(module))
    for one in modules_of(module):
        own = isinstance(one.cls, TorchName)
        held += [
            value
            for name, value in one.attributes.items()
            if isinstance(value, Tensor) and not value.parameter and (own or name in one.stored)
        ]
    for tensor in held:
        machine.write(run, tensor, call.place, "load_state_dict", kind="step", checked=False, certain=sure)
    return run.fresh()


def _quiet(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return run.fresh()


def _shown(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    holders.shown(run, (module,))
    return run.fresh("str")


def _forward(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    return forward_base(run, frame, module, call, node)


_MODEL = {
    "parameters": _parameters, "named_parameters": _named_parameters, "buffers": _buffers, "named_buffers": _buffers,
    "train": _train, "eval": _train, "to": _moved, "cuda": _moved, "cpu": _moved, "half": _moved, "float": _moved, "double": _moved,
    "bfloat16": _moved, "type": _moved, "zero_grad": _zero_grad, "requires_grad_": _requires_grad_, "share_memory": _same,
    "apply": _apply, "state_dict": _state_dict, "load_state_dict": _load_state_dict,
    "extra_repr": _shown, "__repr__": _shown, "__str__": _shown, "save_hyperparameters": _quiet, "log": _quiet, "log_dict": _quiet,
    "print": _quiet, "compile": _compile, "forward": _forward, "__call__": _forward,
}  # fmt: skip
_WALKING = frozenset({
    "parameters", "named_parameters", "buffers", "named_buffers", "train", "eval", "to", "cuda", "cpu",
    "half", "float", "double", "bfloat16", "type", "zero_grad", "requires_grad_", "apply", "state_dict", "load_state_dict",
})  # fmt: skip
"""Methods that go through all that is below a module."""
AN_ATTRIBUTE = 4
"""Units of work that one of them takes for each attribute there."""


def _counted(handler: Handler) -> Handler:
    def counting(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
        run.work(AN_ATTRIBUTE * extent(module))
        return handler(run, frame, module, call, node)

    return counting


for _name, _handler in _MODEL.items():
    MODELS.methods_of("Module", {_name: _counted(_handler) if _name in _WALKING else _handler})
