"""Optimizers: which parameters they hold and what `step` and `zero_grad` write."""

from __future__ import annotations

import ast

from gradguard.engine.autograd import backward, machine
from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    DictV,
    Frame,
    FunctionV,
    Instance,
    ListV,
    Method,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import lifetime, reads
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.iteration import iterate
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run

MODELS = Registry()


def is_optimizer(path: str) -> bool:
    """Whether a torch name is an optimizer class."""
    return (
        path.startswith("torch.optim.")
        and "lr_scheduler" not in path
        and path.rpartition(".")[2][:1].isupper()
        and "swa" not in path
    )


def make(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Instance:
    """An optimizer of torch."""
    made = Instance(TorchName(path), made=call.place)
    fill(run, frame, made, call, node)
    return made


def fill(run: Run, frame: Frame, made: Instance, call: Call, node: ast.AST) -> None:
    """`param_groups` and `state`, as `Optimizer.__init__` makes them."""
    given = call.get(0, "params")
    groups: list[Value] = []
    loose: list[Value] = []
    is_open = False
    if given is not None:
        source = iterate(run, frame, given, node)
        is_open = not source.exact
        for item in source.source:
            if isinstance(item, DictV):
                held = item.items.get("params", ("params", ListV(open=True)))[1]
                if isinstance(held, Tensor):
                    held = ListV([held])
                elif not isinstance(held, ListV):
                    inner = iterate(run, frame, held, node)
                    held = ListV(list(inner.source), open=not inner.exact)
                run.work(len(held.items))
                groups.append(DictV({**item.items, "params": ("params", held)}, open=True))
            elif isinstance(item, TupleV) and len(item.items) == 2 and isinstance(item.items[1], Tensor):
                loose.append(item.items[1])
            elif isinstance(item, (Tensor, Sym)):
                loose.append(item)
    if loose or not groups:
        defaults = _defaults(call)
        groups.insert(
            0,
            DictV(
                {**defaults, "params": ("params", ListV(loose, open=is_open, kind="parameters"))}, open=True
            ),
        )
    made.attributes["param_groups"] = ListV(groups)
    made.attributes["state"] = DictV(open=True, factory=TorchName("torch.optim.state"))
    made.attributes["defaults"] = DictV(open=True)
    made.attributes["__fused__"] = (
        known_truth(call.kwargs.get("fused")) if call.kwargs.get("fused") is not None else False
    )
    run.optimizers.append(made)


def _defaults(call: Call) -> dict[object, tuple[Value, Value]]:
    second = call.args[1] if len(call.args) > 1 else call.kwargs.get("defaults")
    if isinstance(second, DictV):
        return dict(second.items)
    return {key: (key, value) for key, value in call.kwargs.items() if key != "params"}


def parameters(optimizer: Instance) -> list[Tensor]:
    """Parameters an optimizer updates."""
    groups = optimizer.attributes.get("param_groups")
    return tensors_in(groups) if groups is not None else []


def step(run: Run, frame: Frame, optimizer: Instance, call: Call, node: ast.AST) -> Value:
    """`step(closure)`: the closure runs, then every parameter that has a gradient is written."""
    closure = call.get(0, "closure")
    result: Value = None
    lbfgs = getattr(optimizer.cls, "path", "").endswith("LBFGS")
    if isinstance(closure, (FunctionV, Method)):
        loop = run.loop(run.place(frame, node), "closure")
        saved = run.modes
        # Closures run with grad mode on, and LBFGS calls its closure several times a step.
        run.modes = type(saved)(True, False, saved.autocast, None, saved.saved_hooks)
        run.loops.append(loop)
        try:
            for _ in range(2 if lbfgs else 1):
                result = call_value(run, frame, closure, Call([], {}, call.place, [], {}), node)
                lifetime.iteration_ends(run, frame, loop)
                if lbfgs:
                    _write(run, optimizer, run.place(frame, node), node)
                loop.iteration += 1
        finally:
            run.loops.remove(loop)
            run.modes = saved
            lifetime.loop_ends(run, frame, loop)
    _write(run, optimizer, run.place(frame, node), node)
    return result


def written(run: Run, optimizer: Instance, place: Place, node: ast.AST) -> None:
    """A framework lets an optimizer step, for which the program has no line of its own."""
    _write(run, optimizer, place, node)


def _write(run: Run, optimizer: Instance, place: Place, node: ast.AST) -> None:
    fused = optimizer.attributes.get("__fused__")
    for loop in run.loops:
        loop.trains = True
    run.stepped.update(((optimizer, loss), None) for loss in run.due)
    run.between = True
    held = parameters(optimizer)
    run.work(machine.WRITTEN * len(held))
    for parameter in held:
        if parameter.grad is None and parameter.sure and (run.backwards or run.frames[0].namespace.main):
            # Without a gradient nothing is written.
            continue
        has_gradient = isinstance(parameter.grad, Tensor) and parameter.grad.sure
        machine.write(
            run,
            parameter,
            place,
            "step",
            kind="step",
            counted=fused is not True,
            certain=has_gradient,
            checked=False,
            expr=None,
        )


def clear_gradients(run: Run, tensors: list[Tensor], call: Call, node: ast.AST) -> None:
    """`zero_grad`: gradients are dropped, or zeroed in place with `set_to_none=False`."""
    keep = known_truth(call.get(0, "set_to_none", True)) is False
    run.work(len(tensors))
    for tensor in tensors:
        run.cleared.add(tensor.number)
        if keep and isinstance(tensor.grad, Tensor):
            tensor.grad.node, tensor.grad.requires_grad, tensor.grad.leaf = None, False, True
            backward.overwrite_gradient(run, tensor.grad, call.place, "zero_grad")
        else:
            tensor.grad = None


def _step(run: Run, frame: Frame, optimizer: Instance, call: Call, node: ast.AST) -> Value:
    return step(run, frame, optimizer, call, node)


def _zero_grad(run: Run, frame: Frame, optimizer: Instance, call: Call, node: ast.AST) -> Value:
    clear_gradients(run, parameters(optimizer), call, node)
    return None


def _add_param_group(run: Run, frame: Frame, optimizer: Instance, call: Call, node: ast.AST) -> Value:
    groups = optimizer.attributes.get("param_groups")
    group = call.get(0, "param_group")
    if isinstance(groups, ListV):
        groups.items.append(group)
    return None


def _quiet(run: Run, frame: Frame, optimizer: Instance, call: Call, node: ast.AST) -> Value:
    return run.fresh()


MODELS.methods_of("Optimizer", {
    "step": _step, "zero_grad": _zero_grad, "add_param_group": _add_param_group, "state_dict": _quiet, "load_state_dict": _quiet,
})  # fmt: skip


@MODELS.torch_function("torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler")
def _scaler(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("torch.amp.GradScaler"), made=call.place)


def _scale(run: Run, frame: Frame, scaler: Instance, call: Call, node: ast.AST) -> Value:
    """The scaled loss is a new tensor over the loss."""
    loss = call.get(0, "outputs")
    if isinstance(loss, Sym):
        loss = as_tensor(run, loss)
    if not isinstance(loss, Tensor):
        return run.fresh()
    return torchcalls.call_op(
        run, frame, "Tensor.mul", Call([loss, 2.0], {}, call.place, call.exprs[:1] + [None], {}), node
    )


def _scaler_step(run: Run, frame: Frame, scaler: Instance, call: Call, node: ast.AST) -> Value:
    optimizer = call.get(0, "optimizer")
    if isinstance(optimizer, Instance):
        return step(
            run,
            frame,
            optimizer,
            Call(call.args[1:], call.kwargs, call.place, call.exprs[1:], call.kwexprs),
            node,
        )
    return run.fresh()


MODELS.methods_of("GradScaler", {
    "scale": _scale, "step": _scaler_step, "update": _quiet, "unscale_": _quiet,
})  # fmt: skip


@MODELS.torch_function(
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
)
def _clip(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Gradients are written in place, under no_grad."""
    made = run.tensor(call.place)
    made.dtype = "float32"
    given = tensors_in(call.get(0, "parameters"))
    made.device = given[0].device if given else None
    if call.get(3, "error_if_nonfinite") is True and call.name == "clip_grad_norm_":
        reads.host_read(run, frame, node, "error_if_nonfinite", made, implicit=True)
    return made
