"""What a framework does with the hooks of a class that derives from one of its own.

    class Net(LightningModule):
        def training_step(self, batch, batch_idx): ...     each step; the result is differentiated, the optimizers step
        def validation_step(self, batch, batch_idx): ...   each step of a loop under no_grad
        def on_train_epoch_end(self): ...                  when the loop has ended

Two steps are run, as of any loop of unknown length: what the first leaves on the object, the second finds there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gradguard.engine.autograd import backward
from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import kind_of
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    DictV,
    External,
    Frame,
    FunctionV,
    Instance,
    ListV,
    Sym,
    TupleV,
    Value,
    inside,
)
from gradguard.engine.models import optim
from gradguard.engine.models import tensor_methods as tensors
from gradguard.engine.observe import counting, lifetime
from gradguard.engine.python import symbolic
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.iteration import UNKNOWN_ITEMS, iterate
from gradguard.engine.state.coerce import as_tensor
from gradguard.engine.state.run import Run


@dataclass(frozen=True, slots=True)
class Phase:
    """A loop over batches: the hook of each step, and those around it."""

    step: str
    grad: bool = True
    """Whether grad mode is on."""
    differentiates: bool = False
    """Whether the framework differentiates what the hook returns, and steps the optimizers."""
    before: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    """Hooks after each step."""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The hooks of the classes that derive from `bases`, named without their packages."""

    bases: tuple[str, ...]
    phases: tuple[Phase, ...]
    optimizers: str = ""
    """The hook that makes the optimizers."""
    manual: str = ""
    """The attribute that, where it is False, leaves differentiating and stepping to the hook."""

    def phase(self, hook: str) -> Phase | None:
        """The phase whose step a hook is."""
        return next((phase for phase in self.phases if phase.step == hook), None)

    def of(self, cls: Value) -> bool:
        """Whether a class has these hooks."""
        return any(
            isinstance(one, External) and one.path.rpartition(".")[2] in self.bases
            for one in classes.linear(cls)
        )


OPTIMIZERS = "__optimizers__"
"""Attribute of a module: what its hook that makes optimizers has made."""


def optimizers(run: Run, frame: Frame, owner: Instance, schedule: Schedule, node: ast.AST) -> list[Instance]:
    """The optimizers of an object, made when they are first asked for."""
    held = owner.attributes.get(OPTIMIZERS)
    if held is None:
        hook = classes.class_lookup(owner.cls, schedule.optimizers) if schedule.optimizers else None
        made: Value = None
        if isinstance(hook, FunctionV):
            made = _called(run, frame, owner, hook, {}, node)
        found: list[Value] = [
            one for one in inside(made) if isinstance(one, Instance) and kind_of(one) == "Optimizer"
        ]
        held = owner.attributes[OPTIMIZERS] = ListV(found)
    return [one for one in inside(held) if isinstance(one, Instance)]


def drive(
    run: Run, frame: Frame, owner: Instance, schedule: Schedule, phase: Phase, data: Value, node: ast.AST
) -> None:
    """Run a phase of an object; `data` is what its batches come from, None where that is not known."""
    step = classes.class_lookup(owner.cls, phase.step)
    if not isinstance(step, FunctionV):
        return
    # The framework holds the object, whether or not the program does.
    frame = Frame(frame.namespace, {"self": owner}, parent=frame)
    run.frames.append(frame)
    try:
        _run_phase(run, frame, owner, schedule, phase, step, data, node)
    finally:
        run.frames.remove(frame)


def _run_phase(
    run: Run,
    frame: Frame,
    owner: Instance,
    schedule: Schedule,
    phase: Phase,
    step: FunctionV,
    data: Value,
    node: ast.AST,
) -> None:
    made = optimizers(run, frame, owner, schedule, node) if phase.differentiates else []
    _around(run, frame, owner, phase, phase.before, node)
    place = Place(step.namespace.path, step.node)
    loop = run.loop(place, "for")
    loop.over, loop.exact, loop.long = "data", False, True
    run.loops.append(loop)
    try:
        for batch in _batches(run, frame, data, node):
            loop.began = run.tick()
            given = {"batch": batch, "index": counting.later(run) if loop.iteration else 0}
            result = _in_mode(run, frame, owner, phase, step, given, node)
            if phase.differentiates and _automatic(owner, schedule):
                _train(run, frame, made, result, _returns(step), node)
            _around(run, frame, owner, phase, phase.each, node)
            lifetime.iteration_ends(run, frame, loop)
            loop.iteration += 1
    finally:
        run.loops.remove(loop)
        lifetime.loop_ends(run, frame, loop)
    _around(run, frame, owner, phase, phase.after, node)


def _batches(run: Run, frame: Frame, data: Value, node: ast.AST) -> Iterator[Value]:
    if data is None:
        data = run.fresh(text="data")
    items = list(islice(iterate(run, frame, data, node).source, UNKNOWN_ITEMS))
    while len(items) < UNKNOWN_ITEMS:
        items.append(run.fresh(data=True, text="batch"))
    yield from items


def _around(
    run: Run, frame: Frame, owner: Instance, phase: Phase, names: Sequence[str], node: ast.AST
) -> None:
    for name in names:
        hook = classes.class_lookup(owner.cls, name)
        if isinstance(hook, FunctionV):
            _in_mode(run, frame, owner, phase, hook, {}, node)


def _in_mode(
    run: Run,
    frame: Frame,
    owner: Instance,
    phase: Phase,
    hook: FunctionV,
    given: dict[str, Value],
    node: ast.AST,
) -> Value:
    saved = run.modes
    run.modes = Modes(phase.grad, False, saved.autocast, None, saved.saved_hooks)
    try:
        return _called(run, frame, owner, hook, given, node)
    finally:
        run.modes = saved


_BATCH = ("batch", "inputs", "x", "data")


def _called(
    run: Run, frame: Frame, owner: Instance, hook: FunctionV, given: dict[str, Value], node: ast.AST
) -> Value:
    """Call a hook: the batch and its number where it takes them, all else as an entry point would get it."""
    place = Place(hook.namespace.path, hook.node)
    call = Call([owner], {}, place, [None], {})
    symbolic.arguments(run, hook, call)
    call.open_args = False
    arguments = hook.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    for at, name in enumerate(names[1:], 1):
        if "batch" in given and (name in _BATCH or (at == 1 and not set(names) & set(_BATCH))):
            call.args[at] = given["batch"]
        elif "index" in given and name in ("batch_idx", "batch_nb", "step", "i", "idx"):
            call.args[at] = given["index"]
        elif name in ("model", "pl_module") and isinstance(call.args[at], Sym):
            call.args[at] = run.fresh("module", text=name)
    return call_value(run, frame, hook, call, node)


def _automatic(owner: Instance, schedule: Schedule) -> bool:
    return not schedule.manual or owner.attributes.get(schedule.manual) is not False


def _returns(hook: FunctionV) -> Place:
    """Where a hook hands its result to the framework, which differentiates it."""
    last: ast.AST = hook.node
    for part in ast.walk(hook.node):
        if isinstance(part, ast.Return) and part.value is not None:
            last = part
    return Place(hook.namespace.path, last)


def _train(run: Run, frame: Frame, held: list[Instance], result: Value, place: Place, node: ast.AST) -> None:
    """Differentiate the loss and let the optimizers step."""
    if isinstance(result, DictV):
        result = result.items.get("loss", (None, None))[1]
    elif isinstance(result, (TupleV, ListV)):
        result = result.items[0] if result.items else None
    if isinstance(result, Sym):
        result = as_tensor(run, result)
    if not isinstance(result, Tensor):
        return
    call = Call([], {}, place, [], {})
    for one in held:
        optim.clear_gradients(run, optim.parameters(one), call, node)
    tensors.give_history(run, result)
    run.marks.cleared = True
    backward.backward(run, [result], place)
    for one in held:
        optim.written(run, one, place, node)
