"""Entering and leaving `with` blocks."""

from __future__ import annotations

import ast

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.tensors import Place, Tri
from gradguard.engine.domain.values import ContextV, Frame, Instance, IteratorV, ListV, Value, tensors_in
from gradguard.engine.state.run import Run

ENTERED = "__entered__"
"""Attribute of an exit stack: what it has entered and will leave."""


def enter(run: Run, frame: Frame, manager: Value, expr: ast.expr, node: ast.AST) -> Value:
    """Value bound by `as`."""
    if isinstance(manager, ContextV):
        _enter_known(run, frame, manager, node)
        return manager.value
    if isinstance(manager, IteratorV) and manager.kind == "contextmanager":
        return next(manager.source, None)
    if isinstance(manager, Instance):
        method = classes.class_lookup(manager.cls, "__enter__")
        if method is not None:
            return run.python.call(
                run,
                frame,
                classes.bind(manager, method),
                Call([], {}, run.place(frame, expr), [], {}),
                expr,
            )
        return manager
    return run.fresh() if manager is None else manager


def leave(run: Run, frame: Frame, manager: Value, node: ast.AST) -> None:
    """Undo what `enter` did."""
    if isinstance(manager, ContextV):
        _leave_known(run, manager)
    elif isinstance(manager, IteratorV) and manager.kind == "contextmanager":
        next(manager.source, None)
    elif isinstance(manager, Instance):
        held = manager.attributes.get(ENTERED)
        while isinstance(held, ListV) and held.items:
            leave(run, frame, held.items.pop(), node)
        method = classes.class_lookup(manager.cls, "__exit__")
        if method is not None:
            call = Call([None, None, None], {}, run.place(frame, node), [None] * 3, {})
            run.python.call(run, frame, classes.bind(manager, method), call, node)


def by_hand(run: Run, frame: Frame, manager: ContextV, name: str, node: ast.AST) -> Value:
    """`manager.__enter__()` or `manager.__exit__(...)`, whose mode outlives the function that says it."""
    before = run.modes.grad
    if name == "__enter__":
        # `node` names what `as` would bind.
        enter(run, frame, manager, node, node)  # type: ignore[arg-type]
    else:
        leave(run, frame, manager, node)
    run.marks.set_grad = run.modes
    inside = run.functions[-1].name if run.functions else ""
    if run.modes.grad is not before and inside not in ENTERING:
        run.lasts(run.place(frame, node))
    return manager.value


ENTERING = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__"})
"""Where a manager of the program enters another one, which it leaves again."""


def _enter_known(run: Run, frame: Frame, manager: ContextV, node: ast.AST) -> None:
    if manager.mode == "expects":
        run.expected += 1
    elif manager.mode == "version":
        manager.versions = [
            (t.counter, t.counter.value, len(t.counter.writes)) for t in tensors_in(manager.flag)
        ]
    elif manager.mode != "set_grad":
        manager.modes = run.modes
        manager.place = run.place(frame, node)
        run.modes = switched(run.modes, manager)


def _leave_known(run: Run, manager: ContextV) -> None:
    if manager.mode == "expects":
        run.expected -= 1
    elif manager.mode == "version":
        for counter, value, seen in manager.versions or ():
            for write in counter.writes[seen:]:
                write.counted = False
            counter.value = value
            del counter.writes[seen:]
    elif manager.modes is not None:
        run.modes = manager.modes


def swallows(manager: Value) -> bool:
    """Whether what a block raises goes no further."""
    return isinstance(manager, ContextV) and manager.mode in ("expects", "awaits")


def switched(modes: Modes, manager: ContextV) -> Modes:
    """Modes inside a known context manager."""
    return under(modes, manager.mode, known_truth(manager.flag), manager.place)


def under(modes: Modes, mode: str, flag: Tri, place: Place | None) -> Modes:
    """Modes inside a context manager, or inside a function that it decorates."""
    made = Modes(modes.grad, modes.inference, modes.autocast, modes.why_off, modes.saved_hooks)
    if mode == "no_grad":
        made.grad = False
    elif mode == "enable_grad":
        # Under inference_mode nothing is recorded, whatever the grad mode.
        made.grad = not modes.inference
    elif mode == "set_grad":
        made.grad = flag if not modes.inference else False
    elif mode == "inference_mode" and flag is False:
        # It switches grad mode on, also under no_grad.
        made.grad, made.inference = True, False
    elif mode == "inference_mode":
        made.grad, made.inference = False if flag else None, flag is True
    elif mode == "autocast":
        made.autocast = flag is not False
    elif mode == "saved_hooks":
        made.saved_hooks = True
    if made.grad is False and modes.grad is not False:
        made.why_off = place
    return made
