"""Hooks on tensors and modules."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradguard.engine.autograd import machine
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.events import HookWrite
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    Frame,
    FunctionV,
    Hook,
    Instance,
    Method,
    NativeV,
    TorchName,
    TupleV,
    Value,
)
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import registrations
from gradguard.engine.observe.lending import names_in
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.run import Run

MODELS = Registry()


def tensor_hook(run: Run, frame: Frame, owner: Tensor, call: Call, node: ast.AST) -> Value:
    """`t.register_hook(f)`: run `f` once on a gradient, to see whether it writes it."""
    hook = call.get(0, "hook")
    if isinstance(hook, (FunctionV, Method)):
        gradient = run.tensor(call.place)
        gradient.source = "hook"
        saved, run.modes = run.modes, Modes(False, False)
        loops, run.loops = run.loops, []
        try:
            result = call_value(run, frame, hook, Call([gradient], {}, call.place, [None], {}), node)
        finally:
            run.modes = saved
            run.loops = loops
        if owner.leaf is not True or owner.requires_grad is not True:
            for write in gradient.memory.writes:
                run.emit(
                    HookWrite(write.place, False, write.via or gradient.bound_name, write.op, call.place)
                )
        _ = result
    entry = Hook("", hook, call.place, registrations.passes(run))
    registrations.note(run, owner, owner.hooks, entry, node)
    owner.hooks = (*owner.hooks, entry)

    def remove(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        owner.hooks = tuple(one for one in owner.hooks if one is not entry)
        return None

    return _handle(call, remove)


def _register(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Value:
    name = call.name
    kind = {
        "register_forward_hook": "forward",
        "register_forward_pre_hook": "pre",
        "register_full_backward_hook": "backward",
        "register_full_backward_pre_hook": "backward",
        "register_backward_hook": "backward",
    }.get(name, "")
    hook = Hook(kind, call.get(0, "hook"), call.place, registrations.passes(run))
    registrations.note(run, module, module.hooks, hook, node)
    module.hooks.append(hook)

    def remove(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        if hook in module.hooks:
            module.hooks.remove(hook)
        return None

    return _handle(call, remove)


def _handle(call: Call, remove: Callable[..., Value]) -> Instance:
    handle = Instance(TorchName("torch.utils.hooks.RemovableHandle"), made=call.place)
    handle.attributes["remove"] = NativeV(remove, "remove")
    return handle


for _name in (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook",
    "register_backward_hook",
):  # fmt: skip
    MODELS.methods_of("Module", {_name: _register})


def before_forward(run: Run, frame: Frame, module: Instance, call: Call, node: ast.AST) -> Call:
    """Pre-hooks, and the view that a full backward hook puts around the inputs."""
    for hook in list(module.hooks):
        if hook.kind == "pre":
            result = call_value(
                run,
                frame,
                hook.function,
                Call([module, TupleV(tuple(call.args))], {}, call.place, [None, None], {}),
                node,
            )
            if isinstance(result, TupleV):
                call = Call(list(result.items), call.kwargs, call.place, call.exprs, call.kwexprs)
            elif result is not None and isinstance(result, Tensor):
                call = Call([result], call.kwargs, call.place, call.exprs, call.kwexprs)
    if any(hook.kind == "backward" for hook in module.hooks):
        call = Call(
            [_wrapped(run, value, call) for value in call.args],
            call.kwargs,
            call.place,
            call.exprs,
            call.kwexprs,
        )
    return call


def seen_again(module: Instance, call: Call) -> list[Value]:
    """The inputs, where a hook looks at them when the forward is over."""
    if any(hook.kind == "forward" and _takes_inputs(hook.function) for hook in module.hooks):
        return [*call.args, *call.kwargs.values()]
    return []


def _takes_inputs(hook: Value) -> bool:
    """Whether a forward hook uses what stands second, the inputs, among its arguments."""
    function = hook.function if isinstance(hook, Method) else hook
    if not isinstance(function, FunctionV):
        return True
    arguments = function.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][isinstance(hook, Method) :]
    return len(names) < 2 or names[1] in names_in(function.node)


@MODELS.torch_function(
    "torch.nn.modules.module.register_module_forward_hook",
    "torch.nn.modules.module.register_module_forward_pre_hook",
)
def _registered_for_all(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A hook on every module: it may look at whatever is written anywhere."""
    run.marks.by_name = True
    return run.fresh()


def after_forward(
    run: Run, frame: Frame, module: Instance, call: Call, result: Value, node: ast.AST
) -> Value:
    """Forward hooks, and the view that a full backward hook puts around the output."""
    for hook in list(module.hooks):
        if hook.kind == "forward":
            full = Call([module, TupleV(tuple(call.args)), result], {}, call.place, [None] * 3, {})
            changed = call_value(run, frame, hook.function, full, node)
            if isinstance(changed, (Tensor, TupleV)):
                result = changed
    if any(hook.kind == "backward" for hook in module.hooks):
        result = _wrapped(run, result, call)
    return result


def _wrapped(run: Run, value: Value, call: Call, done: dict[int, Value] | None = None) -> Value:
    done = {} if done is None else done
    if isinstance(value, Tensor) and machine.requires(run, (value,)) is not False:
        view = machine.make_view(run, value, "BackwardHook", call.place)
        view.function_output = "BackwardHook"
        view.bound_name = value.bound_name
        return view
    if isinstance(value, TupleV):
        if id(value) not in done:
            items = tuple(_wrapped(run, item, call, done) for item in value.items)
            done[id(value)] = TupleV(items, value.names, value.open)
        return done[id(value)]
    return value
