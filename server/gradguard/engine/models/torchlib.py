"""Names of torch without a model of their own: ops of the table, classes of `torch.nn`, contexts, the rest."""

from __future__ import annotations

import ast

from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    MISSING,
    ClassV,
    ContextV,
    Frame,
    FunctionV,
    Instance,
    ListV,
    NativeV,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models import (
    autograd,
    builtins,
    creation,
    einsum,
    hooks,
    module_methods,
    modules,
    operations,
    optim,
    others,
    packages,
    standard,
)
from gradguard.engine.models import tensor_methods as tensors
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import reads
from gradguard.engine.observe.lending import lend
from gradguard.engine.python.contexts import ENTERING, switched
from gradguard.engine.state.coerce import as_tensor, is_number
from gradguard.engine.state.run import Run

MODELS = Registry()

_MODELS = (
    autograd,
    builtins,
    creation,
    einsum,
    hooks,
    module_methods,
    modules,
    operations,
    optim,
    packages,
    standard,
)
"""Imported for what they register."""

_CONTEXTS = {
    "torch.no_grad": "no_grad",
    "torch.enable_grad": "enable_grad",
    "torch.inference_mode": "inference_mode",
    "torch.autograd.no_grad": "no_grad",
    "torch.autograd.enable_grad": "enable_grad",
    "torch.autograd.inference_mode": "inference_mode",
    "torch.set_grad_enabled": "set_grad",
    "torch.autograd.set_grad_enabled": "set_grad",
    "torch._C._set_grad_enabled": "set_grad",
    "torch.autocast": "autocast",
    "torch.amp.autocast": "autocast",
    "torch.cuda.amp.autocast": "autocast",
    "torch.cpu.amp.autocast": "autocast",
    "torch.autograd._unsafe_preserve_version_counter": "version",
    "torch.autograd.graph.allow_mutation_on_saved_tensors": "saved_hooks",
    "torch.autograd.graph.saved_tensors_hooks": "saved_hooks",
    "torch.autograd.graph.save_on_cpu": "saved_hooks",
}


def call(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """Call a torch name by what the op table knows of it."""
    mode = _CONTEXTS.get(path.replace(".grad_mode.", "."))
    if mode is not None:
        return _context(run, frame, mode, call, node)
    if optim.is_optimizer(path):
        return optim.make(run, frame, path, call, node)
    if modules.is_module_class(path):
        return modules.make(run, frame, path, call, node)
    if path.startswith("torch._foreach_"):
        return _foreach(run, frame, path.removeprefix("torch._foreach_"), call, node)
    if path.startswith("torch.nn.init."):
        return _initialise(run, frame, path, call, node)
    name = path.rpartition(".")[2]
    if path.startswith("torch.Tensor.") and tensors.is_modelled(name):
        return _unbound(run, frame, name, call, node)
    if name == "einsum" and call.args and isinstance(call.args[0], Tensor):
        call = _equation_first(run, call)
    for spelled in _spellings(path, name):
        made = torchcalls.call_op(run, frame, spelled, call, node, name=name)
        if made is not MISSING:
            return made
    if path.startswith("torch.Tensor."):
        return _unbound(run, frame, name, call, node)
    return _unknown(run, frame, path, call, node)


def _equation_first(run: Run, call: Call) -> Call:
    """`einsum(a, (0, 1), b, (1, 2), (0, 2))` as `einsum(equation, a, b)`, which is what the table knows."""
    at = [index for index, value in enumerate(call.args) if isinstance(value, Tensor)]
    args = [run.fresh("str"), *(call.args[index] for index in at)]
    exprs = [None, *(call.expr(index) for index in at)]
    return Call(args, call.kwargs, call.place, exprs, call.kwexprs, call.name, call.open_args)


def _foreach(run: Run, frame: Frame, method: str, call: Call, node: ast.AST) -> Value:
    """`torch._foreach_add_(xs, ys)`: the method on each tensor, with the matching element of each list."""
    lists = [value for value in call.args if isinstance(value, (ListV, TupleV))]
    made: list[Value] = []
    run.work(modules.AN_OP * len(lists[0].items) if lists else 0)
    for index, item in enumerate(lists[0].items if lists else ()):
        rest = [
            (value.items[index] if index < len(value.items) else None)
            if isinstance(value, (ListV, TupleV))
            else value
            for value in call.args[1:]
        ]
        if isinstance(item, Tensor):
            inner = Call(rest, dict(call.kwargs), call.place, [None for _ in rest], {})
            first = len(run.nodes)
            made.append(tensors.method(run, frame, item, method, inner, node))
            if rest and method in _SCALED and is_number(rest[0]):
                for recorded in run.nodes[first:]:
                    if recorded.op == method:
                        recorded.frees = False
    return ListV(made)


_SCALED = ("mul_", "div_")
"""Given a number, these keep it as it is; `x *= 2` keeps a tensor of it, which the first backward frees."""


def _initialise(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """`torch.nn.init` writes its argument under no_grad."""
    saved = run.modes
    run.modes = Modes(False, saved.inference, saved.autocast, saved.why_off, saved.saved_hooks)
    try:
        made = torchcalls.call_op(run, frame, path, call, node, name=path.rpartition(".")[2])
    finally:
        run.modes = saved
    return _unknown(run, frame, path, call, node) if made is MISSING else made


def _spellings(path: str, name: str) -> list[str]:
    spelled = [path]
    if path.startswith("torch.nn.functional."):
        spelled += [f"torch.{name}", f"torch.special.{name}"]
    elif path.startswith("torch.Tensor."):
        spelled.append(f"Tensor.{name}")
    elif path.count(".") == 1:
        spelled += [f"torch.nn.functional.{name}", f"Tensor.{name}"]
    elif path.startswith("torch.ops.aten."):
        spelled.append(f"torch.{path.split('.')[3]}")
    return spelled


def _context(run: Run, frame: Frame, mode: str, call: Call, node: ast.AST) -> Value:
    first = call.args[0] if call.args else call.kwargs.get("mode", call.kwargs.get("enabled", True))
    if mode in ("no_grad", "enable_grad", "inference_mode") and isinstance(first, FunctionV):
        # `torch.no_grad()(f)` and `@torch.no_grad` both end here.
        first.modes = (*first.modes, (mode, True))
        run.marks.functions_changed = True
        return first
    if mode == "autocast":
        first = call.kwargs.get("enabled", True)
    made = ContextV(mode, first, place=run.place(frame, node))
    if mode == "set_grad":
        # It acts when it is made; as a context manager it only goes back.
        before = made.modes = run.modes
        run.modes = switched(before, made)
        run.marks.set_grad = run.modes
        inside = run.functions[-1].name if run.functions else ""
        goes_back = inside in ENTERING or isinstance(run.statement, _GO_BACK)
        if before.grad is not run.modes.grad and not goes_back:
            run.lasts(call.place)
    return made


_GO_BACK = (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that leave the grad mode as they found it, whatever sets it in their first line."""


def _unbound(run: Run, frame: Frame, name: str, call: Call, node: ast.AST) -> Value:
    """`torch.Tensor.add_(x, 1)`."""
    if call.args and isinstance(call.args[0], Sym):
        as_tensor(run, call.args[0])
    if call.args and isinstance(call.args[0], Tensor):
        rest = Call(call.args[1:], call.kwargs, call.place, call.exprs[1:], call.kwexprs)
        return tensors.method(run, frame, call.args[0], name, rest, node)
    return run.fresh()


_SILENT = ("cuda.", "backends.", "manual_seed", "random.", "set_", "get_", "is_", "use_", "distributed.", "profiler.", "save", "multiprocessing.", "version", "utils.", "seed", "hub.", "jit.", "onnx.", "compiler.", "_dynamo.", "accelerator.", "mps.", "xpu.", "finfo", "iinfo", "Size", "Generator", "amp.")  # fmt: skip

_ONLY_LOOKS = ("cuda.", "backends.", "is_", "get_", "save", "accelerator.", "mps.", "xpu.")


def _unknown(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    tensors = [t for value in (*call.args, *call.kwargs.values()) for t in tensors_in(value)]
    short = path.removeprefix("torch.")
    if short.startswith(("cuda.is_available", "backends.mps.is_available", "is_tensor", "cuda.device_count")):
        if short.startswith("is_tensor") and call.args:
            return isinstance(call.args[0], Tensor) or (
                run.fresh("bool") if isinstance(call.args[0], Sym) else False
            )
        run.devices.add("accelerator")
        return Sym((path,), "bool" if "is_available" in path else "int")
    if short.startswith(_SILENT) or not tensors:
        if not short.startswith(_ONLY_LOOKS):
            lend(run, (*call.args, *call.kwargs.values()))
        return run.fresh(data=not tensors)
    if short.startswith("distributions"):
        return _distribution(run, frame, path, call, node)
    return torchcalls.unknown_op(run, call, path.rpartition(".")[2], view=True)


def _distribution(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """A distribution holds its parameters and checks their values; what it computes carries their graph."""
    made = Instance(TorchName(path), made=call.place)
    made.attributes["__parameters__"] = TupleV((*call.args, *call.kwargs.values()))
    validates = call.kwargs.get("validate_args") is not False
    made.attributes["__validates__"] = validates
    tensors = tensors_in(made.attributes["__parameters__"])
    if validates and tensors:
        name = path.rpartition(".")[2]
        reads.host_read(run, frame, node, name, tensors[0], implicit=True, checks=True)
    return made


@MODELS.torch_function("torch.compile", "torch.jit.script", "torch.jit.trace", "torch.fx.symbolic_trace")
def _compile(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    target = call.get(0, "model")
    name = call.name
    if isinstance(target, (FunctionV, Instance)):
        target.compiled = name.endswith("compile")
        run.marks.functions_changed = True
    elif target is None:
        return NativeV(lambda run, frame, call, node: call.get(0, "fn"), "compile")
    return target


@MODELS.torch_function("torch.utils.swap_tensors")
def _swapped(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Each is the other from here on, also to those who hold it: what was known of either is not followed."""
    lend(run, call.args)
    for tensor in tensors_in(TupleV(tuple(call.args))):
        tensor.requires_grad = tensor.leaf = tensor.inference = None
        tensor.alias_sure = tensor.sure = False
    return None


@MODELS.torch_function("torch.is_floating_point")
def _floats(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    owner = call.get(0, "input")
    owner = as_tensor(run, owner) if isinstance(owner, Sym) else owner
    if not isinstance(owner, Tensor):
        return run.fresh("bool")
    asked = Call([], {}, call.place, [], {}, name="is_floating_point")
    return run.models.method(run, frame, owner, "is_floating_point", asked, node)


@MODELS.torch_function("torch.is_grad_enabled")
def _enabled(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return run.modes.grad if run.modes.grad is not None else run.fresh("bool")


@MODELS.torch_function("torch.jit.is_tracing", "torch.jit.is_scripting", "torch.onnx.is_in_onnx_export")
def _exports(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A program that trains is neither traced nor exported."""
    return False


@MODELS.torch_function("torch.cuda.is_available", "torch.backends.mps.is_available")
def _available(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    run.devices.add("accelerator")
    return Sym(("accelerator",), "bool")


@MODELS.torch_function("torch.utils.data.TensorDataset", "torch.utils.data.DataLoader", "torch.utils.data.dataset.TensorDataset", "torch.utils.data.dataloader.DataLoader")  # fmt: skip
def _dataset(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    loader = call.name.endswith("DataLoader")
    made = Instance(
        TorchName("torch.utils.data." + ("DataLoader" if loader else "TensorDataset")), made=call.place
    )
    if loader:
        made.attributes["dataset"] = call.get(0, "dataset")
        # What a `collate_fn` puts together may lie anywhere.
        given = call.open_args or call.get(6, "collate_fn") is not None
        made.attributes["pin_memory"] = run.fresh("bool") if given else call.get(7, "pin_memory", False)
    else:
        made.attributes["tensors"] = TupleV(tuple(call.args))
    return made


def class_method(run: Run, frame: Frame, cls: ClassV, name: str, call: Call, node: ast.AST) -> Value:
    """A class-level call that the workspace class does not define itself."""
    if name == "apply":
        return autograd.function_apply(run, frame, cls, call, node)
    if name in ("mro", "__subclasses__"):
        return ListV()
    if name == "__new__" and call.args and isinstance(call.args[0], ClassV):
        return Instance(call.args[0], made=call.place)

    handler = f"{name}"
    if call.args and isinstance(call.args[0], Instance):
        # `Base.method(self, ...)`.

        rest = Call(call.args[1:], call.kwargs, call.place, call.exprs[1:], call.kwexprs)
        return run.models.method(run, frame, call.args[0], handler, rest, node)
    return others.unknown_call(run, frame, f"{cls.name}.{name}", call, node)
