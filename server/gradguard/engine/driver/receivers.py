"""The object whose method an entry calls: made by the class's `__init__` with symbolic arguments.

A method may depend on what its constructor decided, so each path has an object of its own: made anew, or put back as it
was made for an earlier path whose constructor decided the same, as most do.

    if config.bias: self.bias = ...     two objects for all paths of all methods, one for each answer

Where making one takes long, as for a whole network, the paths would see nothing but the constructor: such an object is
made once for all methods of its class, and what its constructor decided stays decided.
"""

from __future__ import annotations

import ast

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Place
from gradguard.engine.domain.values import ClassV, Frame, FunctionV, Instance, Value
from gradguard.engine.driver.objects import Kept, Made, Objects
from gradguard.engine.driver.wiring import PORTS
from gradguard.engine.driver.work import Work
from gradguard.engine.python import symbolic
from gradguard.engine.python.calls import instantiate
from gradguard.engine.state import faults
from gradguard.engine.state.path import (
    MAX_FUNCTION_STEPS,
    OP_STEPS,
    BudgetExceeded,
    Oracle,
    PathEnd,
    PyRaise,
)
from gradguard.engine.state.run import Left, Run
from gradguard.engine.state.watch import Watch

MANY_STEPS = 3_000
"""A constructor that takes more is run once for all methods."""
FEW_STEPS = 60
"""One that takes fewer is run as fast as its object is put back."""
MAX_KEPT = 24
"""Objects of one class that are kept, each for other answers."""


def receiver(run: Run, work: Work, frame: Frame, cls: ClassV, place: Place) -> Value:
    """The object for this path."""
    assert work.definitions is not None
    if cls.name not in work.objects:
        # What the entry asked for so far (the class itself) stays asked for.
        asked = work.definitions.variables.read
        work.objects[cls.name] = _shared(work, frame, cls)
        work.definitions.variables.read |= asked
    objects = work.objects[cls.name]
    run.objects[cls.name] = objects.took
    if objects.shared is not None:
        run.oracle.answers.update(objects.shared.answers)
        return _take(run, work, objects.shared)
    others = run.oracle.given or run.oracle.others
    if work.noting or not objects.again or objects.took < FEW_STEPS or others:
        return _construct(run, frame, cls, place)
    kept = next((one for one in objects.kept if one.given.follows(run.oracle.prefix)), None)
    if kept is None and len(objects.kept) < MAX_KEPT:
        asked = work.definitions.variables.read
        kept = _kept(run, work, frame, cls)
        work.definitions.variables.read |= asked
        if kept is None:
            objects.again = False
        else:
            objects.kept.append(kept)
    if kept is None:
        return _construct(run, frame, cls, place)
    run.step(kept.steps)
    run.oracle.go(kept.given)
    run.take(kept.left)
    return _take(run, work, kept.made)


def _take(run: Run, work: Work, made: Made) -> Value:
    assert work.definitions is not None
    assert work.library is not None
    run.start_after(work.library)
    run.entered |= made.entered
    run.devices |= made.devices
    run.limits.update(made.limits)
    run.faults += made.faults
    work.definitions.variables.read |= made.read
    work.definitions.snapshot.lend(made.value)
    return made.value


def _aside(work: Work, frame: Frame, budget: list[int], prefix: tuple[bool, ...] = ()) -> Run:
    """A run that makes an object for others."""
    library = work.library
    assert library is not None
    run = Run(
        work.table,
        Oracle(prefix),
        budget,
        work,
        PORTS,
        work.numbers(),
        work.file.path,
        library.import_budget,
        watch=Watch(work.every_write),
        tree=work.file.tree,
    )
    run.library, run.namespaces = library, library.namespaces
    run.start_after(library)
    run.frames.append(frame)
    return run


def _shared(work: Work, frame: Frame, cls: ClassV) -> Objects:
    budget = [MAX_FUNCTION_STEPS]
    run = _aside(work, frame, budget)
    place = Place(work.file.path, cls.node or ast.Pass())
    partly = Instance(cls, made=place)
    value: Value = partly
    try:
        value = _construct(run, frame, cls, place, partly)
    except PathEnd:
        pass
    except BudgetExceeded:
        run.limits[f"`{cls.name}` is made in part: that needs more steps than the budget allows"] = None
    many = MAX_FUNCTION_STEPS - budget[0] > MANY_STEPS
    made = _finished(run, work, value if many else None)
    return Objects(made if many else None, MAX_FUNCTION_STEPS - max(budget[0], 0) + run.ops * OP_STEPS)


def _kept(run: Run, work: Work, frame: Frame, cls: ClassV) -> Kept | None:
    """An object made as this path makes it; None where making it does more than that."""
    budget = [run.budget[0]]
    made_by = _aside(work, frame, budget, run.oracle.prefix)
    place = Place(work.file.path, cls.node or ast.Pass())
    value: Value = None
    left: Left | None = None
    try:
        value = _construct(made_by, frame, cls, place)
        left = made_by.left()
    except (PathEnd, BudgetExceeded):
        pass
    made = _finished(made_by, work, value if left is not None else None)
    if left is None:
        return None
    return Kept(made, made_by.oracle.gone(), left, run.budget[0] - budget[0])


def _finished(run: Run, work: Work, value: Value) -> Made:
    """What was made; all else is put back as it was before, and the object is kept where there is one."""
    definitions, library = work.definitions, work.library
    assert definitions is not None
    assert library is not None
    library.start_after(run)
    made = Made(
        value,
        run.oracle.answers,
        frozenset(run.entered),
        frozenset(definitions.variables.read),
        frozenset(run.devices),
        run.limits,
        tuple(run.faults),
    )
    definitions.functions_changed = definitions.functions_changed or run.marks.functions_changed
    definitions.restore()
    if value is not None:
        definitions.snapshot.keep(value)
    definitions.begin(library)
    return made


def _construct(run: Run, frame: Frame, cls: ClassV, place: Place, made: Instance | None = None) -> Value:
    call = Call([], {}, place, [], {})
    init = classes.class_lookup(cls, "__init__")
    where = faults.around(run)
    try:
        if isinstance(init, FunctionV):
            call.args.append(None)
            symbolic.arguments(run, init, call)
            del call.args[0]
        return instantiate(run, frame, cls, call, place.node, made)
    except PyRaise:
        return Instance(cls, made=place)
    except (PathEnd, BudgetExceeded):
        raise
    except Exception as error:
        faults.back(run, where)
        at = init.node if isinstance(init, FunctionV) and init.namespace.path == run.home else place.node
        run.faults.append(faults.met(error, at, what=f"`{cls.name}` is made in part"))
        return Instance(cls, made=place)
