"""`torch.autograd`: backward, grad, custom Functions, checkpointing."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradguard.engine.autograd import layout, machine
from gradguard.engine.autograd.backward import backward, check_root
from gradguard.engine.dispatch.results import MADE
from gradguard.engine.domain import classes, spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.events import ON_CONTEXT, FunctionMutation
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Cut, Saved, Tensor
from gradguard.engine.domain.values import (
    ClassV,
    Frame,
    FunctionNotes,
    FunctionV,
    Instance,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models import tensor_methods as tensors
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import contexts, graphs
from gradguard.engine.python.calls import call_value
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run

MODELS = Registry()


def _roots(run: Run, value: Value) -> list[Tensor]:
    if isinstance(value, Sym):
        value = as_tensor(run, value)
    roots = tensors_in(value)
    for root in roots:
        tensors.give_history(run, root)
    return roots


@MODELS.torch_function("torch.autograd.backward")
def _backward(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    create = known_truth(call.get(3, "create_graph", False))
    retain = call.get(2, "retain_graph")
    inputs = call.kwargs.get("inputs")
    roots = _roots(run, call.get(0, "tensors"))
    leaves = backward(
        run,
        roots,
        call.place,
        retain=create if retain is None else known_truth(retain),
        inputs=tensors_in(inputs) if inputs is not None else None,
        create=create,
    )
    if create is True:
        run.doubled.append((call.place, spelling.source_text(node), leaves))
    return None


@MODELS.torch_function("torch.autograd.grad")
def _grad(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Gradients with respect to `inputs`; with `create_graph` they carry a graph of their own."""
    create = known_truth(call.get(4, "create_graph", False))
    retain = call.get(3, "retain_graph")
    roots = _roots(run, call.get(0, "outputs"))
    wanted = call.get(1, "inputs")
    if isinstance(wanted, Sym):
        wanted = as_tensor(run, wanted)
    inputs = tensors_in(wanted)
    for root in roots:
        check_root(run, root, call.place)
    backward(
        run,
        roots,
        call.place,
        retain=create if retain is None else known_truth(retain),
        inputs=inputs,
        # A gradient that is differentiated again is part of a computation, not the end of a step.
        trains=create is not True,
        create=create,
    )
    made: list[Value] = []
    wanted_inputs: list[Tensor | None] = list(inputs) or [None]
    kept = _kept_by(run, roots) if create is not False and run.modes.grad is not False else []
    run.work(MADE * len(wanted_inputs))
    for source in wanted_inputs:
        gradient = run.tensor(call.place)
        if source is not None:
            gradient.dtype, gradient.device = source.dtype, source.device
            layout.fresh(gradient, source.shape, [])
        gradient.source = "grad"
        gradient.sure = source is not None and source.sure
        if create is not False and run.modes.grad is not False:
            _doubled(run, gradient, roots, kept, call, certain=create is True)
        made.append(gradient)
    return TupleV(tuple(made), open=not inputs)


def _kept_by(run: Run, roots: list[Tensor]) -> list[Saved]:
    """What the first backward needs."""
    return [
        saved
        for node in graphs.graph(run, *(root.node for root in roots if root.node is not None))
        if not node.doubled
        for saved in node.saved
        if saved.tensor.requires_grad is not False and saved.certain
    ]


def _doubled(
    run: Run, gradient: Tensor, roots: list[Tensor], kept: list[Saved], call: Call, *, certain: bool
) -> None:
    """The gradient's own node: differentiating it needs what the first backward needed."""
    node = machine.record(run, "grad", call.place, roots, certain=certain, frees=None)
    node.doubled = True
    run.work(machine.WRITTEN * len(kept))
    for one in kept:
        again = machine.save(
            run, node, one.role, one.tensor, certain=certain, why="double backward", expr=one.expr
        )
        if again is not None:
            again.version, again.memory_mark = one.version, one.memory_mark
    gradient.node = node
    gradient.requires_grad = True if certain else None
    gradient.leaf = False


def function_apply(
    run: Run, frame: Frame, cls: ClassV, call: Call, node: ast.AST, *, by_unknown: bool = False
) -> Value:
    """`MyFunction.apply(...)`: forward without recording, then one node that keeps what the context saved.

    by_unknown: the caller is not known, so whether anything requires grad is not either.
    """
    notes = FunctionNotes()
    context = Instance(TorchName("torch.autograd.function.FunctionCtx"), made=call.place, context=notes)
    forward = classes.class_lookup(cls, "forward")
    setup = classes.class_lookup(cls, "setup_context")
    inputs = [
        t
        for value in call.args
        for t in tensors_in(value.tensor if isinstance(value, Sym) and value.tensor else value)
    ]
    versions = {t.number: t.counter.value for t in inputs}
    needs = None if by_unknown else machine.requires(run, inputs)
    saved_modes = run.modes
    run.modes = Modes(False, saved_modes.inference, saved_modes.autocast, None, saved_modes.saved_hooks)
    run.marks.ran_function = True
    args = list(call.args)
    try:
        if forward is None:
            return run.fresh()
        full = Call([context, *args], call.kwargs, call.place, [None, *call.exprs], call.kwexprs)
        if setup is not None:
            result = call_value(
                run, frame, forward, Call(args, call.kwargs, call.place, call.exprs, call.kwexprs), node
            )
            call_value(
                run,
                frame,
                setup,
                Call([context, TupleV(tuple(args)), result], {}, call.place, [None] * 3, {}),
                node,
            )
        else:
            result = call_value(run, frame, forward, full, node)
    finally:
        run.modes = saved_modes
    notes.inputs = [t for value in args for t in tensors_in(value)]
    dirty = {t.number for t in tensors_in(notes.dirty)}
    for tensor in inputs:
        if tensor.counter.value != versions[tensor.number] and tensor.number not in dirty:
            last = tensor.counter.writes[-1]
            run.emit(
                FunctionMutation(
                    last.place,
                    needs is True,
                    "input",
                    last.via or tensor.bound_name,
                    last.op,
                    leaf=tensor.leaf is True and tensor.requires_grad is True,
                )
            )
    return _function_result(run, cls, context, notes, result, inputs, needs, call, dirty)


def _function_result(
    run: Run,
    cls: ClassV,
    context: Instance,
    notes: FunctionNotes,
    result: Value,
    inputs: list[Tensor],
    needs: bool | None,
    call: Call,
    dirty: set[int],
) -> Value:
    if needs is False:
        return result
    notes.records = needs is True
    node = machine.record(run, cls.name, call.place, inputs, certain=needs is True)
    kept = tensors_in(context.attributes.get("saved_tensors"))
    node.frees = bool(kept) if needs else None
    attributes = {
        name: tensors_in(value) for name, value in context.attributes.items() if name != "saved_tensors"
    }
    keeps = any(attributes.values())
    attributes_read = contexts.read_by(classes.class_lookup(cls, "backward")) if keeps else None
    for name, held in attributes.items():
        for tensor in held:
            tensor.memory.held = True
            if attributes_read is None or name in attributes_read:
                machine.save(
                    run, node, name, tensor, certain=needs is True and attributes_read is not None,
                    why=ON_CONTEXT, counted=False,
                )  # fmt: skip
    outputs = tensors_in(result)
    blocked = {t.number for t in tensors_in(notes.undifferentiated)}
    replaced: dict[int, Tensor] = {}
    given = {t.number for t in inputs}
    roots = {t.root.number for t in inputs}
    for output in outputs:
        if output.number in blocked:
            continue
        seen = output.number in given or (output.base is not None and output.root.number in roots)
        if not seen or output.number in dirty:
            notes.outputs.append(output)
        if seen and output.number not in dirty:
            # An input, or a view of one: torch hands out a view that refuses in-place writes.
            view = machine.make_view(run, output, cls.name, call.place)
            view.function_output = cls.name
            view.node, view.requires_grad, view.leaf = node, needs, False
            replaced[output.number] = view
        else:
            output.node, output.requires_grad, output.leaf = node, needs, False if needs else None
            output.base = None
    for tensor in kept:
        machine.save(run, node, "saved", tensor, certain=needs is True, why="save_for_backward")
    run.marks.functions.append((cls, context))
    if not replaced:
        return result
    if isinstance(result, Tensor):
        return replaced.get(result.number, result)
    if isinstance(result, TupleV):
        return TupleV(
            tuple(replaced.get(t.number, t) if isinstance(t, Tensor) else t for t in result.items),
            open=result.open,
        )
    return result


def enter_forward(run: Run, frame: Frame, cls: ClassV, call: Call, node: ast.AST) -> None:
    """`forward` and `backward` as a caller that is not read has them run, to see what is kept. What they write is told elsewhere."""
    before = len(run.events)
    args = call.args if classes.class_lookup(cls, "setup_context") is not None else call.args[1:]
    function_apply(
        run, frame, cls, Call(args, call.kwargs, call.place, [None] * len(args), {}), node, by_unknown=True
    )
    check_backward(run, cls, frame)
    del run.events[before:]


def check_backward(run: Run, cls: ClassV, frame: Frame) -> None:
    """Interpret a Function's `backward` once, to see what it writes."""
    method = classes.class_lookup(cls, "backward")
    if not isinstance(method, FunctionV) or isinstance(method.node, ast.Lambda):
        return
    context = next((ctx for one, ctx in run.marks.functions if one is cls), None)
    if context is None:
        context = Instance(TorchName("torch.autograd.function.FunctionCtx"), context=FunctionNotes())
    place = run.place(frame, method.node)
    gradients = []
    count = max(1, len(method.node.args.args) - 1)
    for index in range(count):
        gradient = run.tensor(place)
        gradient.bound_name = (
            method.node.args.args[index + 1].arg if index + 1 < len(method.node.args.args) else "grad_output"
        )
        gradients.append(gradient)
    saved = tensors_in(context.attributes.get("saved_tensors"))
    marks = {t.number: len(t.memory.writes) for t in (*gradients, *saved)}
    modes = run.modes
    run.modes = Modes(False, False)
    try:
        call_value(
            run, frame, method, Call([context, *gradients], {}, place, [None] * (count + 1), {}), method.node
        )
    finally:
        run.modes = modes
    for group, what in ((saved, "saved"), (gradients, "grad_output")):
        for tensor in group:
            for write in tensor.memory.writes[marks[tensor.number] :]:
                run.emit(FunctionMutation(write.place, False, what, write.via or tensor.bound_name, write.op))


def _save_for_backward(run: Run, frame: Frame, context: Instance, call: Call, node: ast.AST) -> Value:
    context.attributes["saved_tensors"] = TupleV(tuple(call.args))
    return None


def _mark_dirty(run: Run, frame: Frame, context: Instance, call: Call, node: ast.AST) -> Value:
    if context.context is not None:
        context.context.dirty = TupleV(tuple(call.args))
    return None


def _mark_nondiff(run: Run, frame: Frame, context: Instance, call: Call, node: ast.AST) -> Value:
    if context.context is not None:
        context.context.undifferentiated = TupleV(tuple(call.args))
    return None


def _nothing(run: Run, frame: Frame, context: Instance, call: Call, node: ast.AST) -> Value:
    return None


MODELS.methods_of("FunctionCtx", {
    "save_for_backward": _save_for_backward, "mark_dirty": _mark_dirty, "mark_non_differentiable": _mark_nondiff, "set_materialize_grads": _nothing, "save_for_forward": _nothing,
})  # fmt: skip


@MODELS.torch_function("torch.utils.checkpoint.checkpoint")
def _checkpoint(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Runs the function now and keeps its tensor arguments, checked at backward."""
    function = call.get(0, "function")
    kwargs = {k: v for k, v in call.kwargs.items() if k not in _CHECKPOINT_OPTIONS}
    rest = Call(call.args[1:], kwargs, call.place, call.exprs[1:], call.kwexprs)
    inputs = [t for value in rest.args for t in tensors_in(value)]
    run.work(len(inputs))
    marks = [(t, t.counter.value, len(t.memory.writes)) for t in inputs]
    for tensor in inputs:
        tensor.memory.saved = True
    before = run.modes
    run.modes = replace(before, saved_hooks=True)
    if call.kwargs.get("use_reentrant") is True and inputs and machine.requires(run, inputs) is False:
        # It is one node over its inputs, and what the function does is recorded at backward: none of them asks for it.
        run.modes = replace(run.modes, grad=False, why_off=call.place)
        run.cuts_under.setdefault(call.place.node, Cut(call.place, "checkpoint", ""))
    try:
        result = call_value(run, frame, function, rest, node)
    finally:
        run.modes = before
    outputs = tensors_in(result)
    run.work(machine.WRITTEN * len(outputs) * len(marks))
    for output in outputs:
        if output.node is not None and not run.modes.saved_hooks:
            for tensor, version, mark in marks:
                kept = machine.save(
                    run, output.node, "input", tensor, why="checkpoint runs the function again"
                )
                if kept is not None:
                    kept.version, kept.memory_mark = version, mark
    return result


_CHECKPOINT_OPTIONS = frozenset(
    {"use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop"}
)


@MODELS.torch_function("torch.utils.checkpoint.checkpoint_sequential")
def _checkpoint_sequential(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return run.fresh()


@MODELS.torch_function("torch.autograd.gradcheck")
def _checked(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return run.fresh()


@MODELS.torch_function("torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly")
def _anomaly(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return run.fresh()
