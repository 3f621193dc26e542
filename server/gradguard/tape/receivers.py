"""The object whose method an entry calls: made by the class's `__init__` with symbolic arguments.

A method may depend on what its constructor decided, so each path makes an object of its own. Where that takes
long, as for a whole network, the paths would see nothing but the constructor: such an object is made once, for
all methods of its class, and put back as it was for each path. What its constructor decided stays decided.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.tape import attributes, symbolic
from gradguard.tape.binding import Call
from gradguard.tape.calls import instantiate
from gradguard.tape.domain import Place
from gradguard.tape.path import MAX_FUNCTION_STEPS, BudgetExceeded, Oracle, PathEnd, PyRaise
from gradguard.tape.run import Run
from gradguard.tape.shares import OP_STEPS
from gradguard.tape.values import ClassV, FunctionV, Instance, Value

if TYPE_CHECKING:
    from gradguard.tape.entry import Work
    from gradguard.tape.frame import Frame

MANY_STEPS = 3_000
"""A constructor that takes more is run once for all methods."""


@dataclass(slots=True)
class Made:
    """An object that methods share, and what making it decided and needed."""

    value: Value
    answers: dict[Hashable, bool]
    entered: frozenset[ast.AST]
    read: frozenset[str]
    devices: frozenset[str]
    limits: dict[str, None]


def receiver(run: Run, work: Work, frame: Frame, cls: ClassV, place: Place) -> Value:
    """The object for this path."""
    if cls.name not in work.objects:
        # What the entry asked for so far (the class itself) stays asked for.
        assert work.definitions is not None
        asked = work.definitions.variables.read
        work.objects[cls.name] = _shared(work, frame, cls)
        work.definitions.variables.read |= asked
    made = work.objects[cls.name]
    run.objects[cls.name] = work.made[cls.name]
    if made is None:
        return _construct(run, frame, cls, place)
    assert work.definitions is not None
    run.oracle.answers.update(made.answers)
    run.entered |= made.entered
    run.devices |= made.devices
    run.limits.update(made.limits)
    work.definitions.variables.read |= made.read
    work.definitions.snapshot.lend(made.value)
    return made.value


def _shared(work: Work, frame: Frame, cls: ClassV) -> Made | None:
    definitions, library = work.definitions, work.library
    assert definitions is not None
    assert library is not None
    budget = [MAX_FUNCTION_STEPS]
    numbers = work.numbers(len(work.objects))
    run = Run(
        work.table,
        Oracle(),
        budget,
        work,
        numbers,
        work.file.path,
        library.import_budget,
        shares=work.shares,
    )
    run.library, run.namespaces = library, library.namespaces
    run.start_after(library)
    run.frames.append(frame)
    place = Place(work.file.path, cls.node or ast.Pass())
    partly = Instance(cls, made=place)
    value: Value = partly
    try:
        value = _construct(run, frame, cls, place, partly)
    except PathEnd:
        pass
    except BudgetExceeded:
        run.limits[f"`{cls.name}` is made in part: that needs more steps than the budget allows"] = None
    made = None
    work.made[cls.name] = MAX_FUNCTION_STEPS - max(budget[0], 0) + run.ops * OP_STEPS
    if MAX_FUNCTION_STEPS - budget[0] > MANY_STEPS:
        library.start_after(run)
        made = Made(
            value,
            run.oracle.answers,
            frozenset(run.entered),
            frozenset(definitions.variables.read),
            frozenset(run.devices),
            run.limits,
        )
    definitions.functions_changed = definitions.functions_changed or "functions_changed" in run.notes
    definitions.restore()
    if made is not None:
        definitions.snapshot.keep(value)
    definitions.begin(library)
    return made


def _construct(run: Run, frame: Frame, cls: ClassV, place: Place, made: Instance | None = None) -> Value:
    call = Call([], {}, place, [], {})
    init = attributes.class_lookup(cls, "__init__")
    if isinstance(init, FunctionV):
        call.args.append(None)
        symbolic.arguments(run, init, call)
        del call.args[0]
    try:
        return instantiate(run, frame, cls, call, place.node, made)
    except PyRaise:
        return Instance(cls, made=place)
