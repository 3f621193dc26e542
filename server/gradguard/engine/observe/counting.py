"""What a loop counts: numbers and lengths after passes that are not run.

Of a long loop only the first passes are run. `n += 1` has made 1 of `n` then, and a list that is appended to has one
item, yet `if n < 32: continue` and `if len(buffer) < 32: continue` do not hold for ever. So at the end of each such
pass what it has counted becomes an unknown number, and what has grown a container of unknown length.
"""

from __future__ import annotations

import ast

from gradguard.engine.domain.keys import Itself
from gradguard.engine.domain.loops import Loop
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import (
    Cell,
    Container,
    DictV,
    Frame,
    Instance,
    ListV,
    Sym,
    TupleV,
    Value,
)
from gradguard.engine.state.run import Run


def cell(frame: Frame, target: ast.expr, owner: Value = None, index: Value = None) -> Cell | None:
    """Where an assignment to a target puts its value; None for what is not followed."""
    if isinstance(target, ast.Name):
        return frame.outer_names.get(target.id, frame).variables, target.id
    if isinstance(target, ast.Attribute):
        return (owner.attributes, target.attr) if isinstance(owner, Instance) else None
    if isinstance(owner, ListV):
        known = isinstance(index, int) and -len(owner.items) <= index < len(owner.items)
        return (owner, index % len(owner.items)) if known and isinstance(index, int) else None
    return (owner, token(index)) if isinstance(owner, DictV) else None


def counted(run: Run, at: Cell | None, op: type[ast.operator] | None, before: Value, step: Value) -> None:
    """Note that a statement has made the number at a place from the one before; `op` and `step` for `n += 1`."""
    if at is None:
        return
    up = op is ast.Add and type(step) is int and step > 0 and _from_zero(before)
    where = (id(at[0]), at[1])
    for loop in run.loops:
        if loop.long:
            rises = up and (where not in loop.counted or loop.counted[where][1])
            loop.counted[where] = (at, rises)
            if loop.iteration:
                # The second pass stands for all that follow.
                _forget(run, at, rises)


def passed(run: Run, test: ast.If) -> None:
    """Note that a test of a counter was passed in the pass that is running."""
    loop = run.loops[-1]
    if loop.long and loop.passed.setdefault(test, loop.iteration) == loop.iteration == 1:
        loop.late.append(test)


def another(run: Run, item: Value) -> Value:
    """An item of unknown data like the last one; None where there is no telling what it would be."""
    if type(item) is int or (isinstance(item, Sym) and item.kind == "index"):
        return later(run)
    if isinstance(item, Sym) and item.data:
        made = run.fresh(data=True)
        made.kind = item.kind
        return made
    if isinstance(item, TupleV):
        parts = [another(run, part) for part in item.items]
        known = [part for part in parts if part is not None]
        return TupleV(tuple(known), names=item.names, open=item.open) if len(known) == len(parts) else None
    return None


def grown(run: Run, container: Container) -> None:
    """Note that a container has got an item."""
    for loop in run.loops:
        if loop.long:
            loop.grown[id(container)] = container


def pass_ends(run: Run, loop: Loop) -> None:
    """Forget what exactly a pass of a long loop has counted."""
    for at, rises in loop.counted.values():
        _forget(run, at, rises)
    for container in loop.grown.values():
        container.counted = True
    loop.counted.clear()
    loop.grown.clear()


def later(run: Run) -> Sym:
    """A number of a count that is not its first."""
    return _later(run.fresh("index"))


def _later(made: Sym) -> Sym:
    made.later = made.counted = True
    return made


def length(container: Container) -> Value:
    """`len` of a container that has no unknown items."""
    known = len(container.items)
    if not container.counted or not known or (isinstance(container, ListV) and container.maxlen == known):
        return known
    return _later(Sym(("len", Itself(container), known), "index"))


def _forget(run: Run, at: Cell, rises: bool) -> None:
    number = read(at)
    if type(number) is int and rises:
        _write(at, later(run))
    elif type(number) in (int, float):
        made = run.fresh("int" if type(number) is int else "number")
        made.counted = True
        _write(at, made)


def _from_zero(value: Value) -> bool:
    return (type(value) is int and value >= 0) or (isinstance(value, Sym) and value.later)


def read(at: Cell) -> Value:
    """The value at a place; None for nothing."""
    held, key = at
    if isinstance(held, ListV):
        return held.items[key] if isinstance(key, int) and key < len(held.items) else None
    if isinstance(held, DictV):
        return held.items[key][1] if key in held.items else None
    return held.get(str(key))


def _write(at: Cell, value: Value) -> None:
    held, key = at
    if isinstance(held, ListV):
        if isinstance(key, int):
            held.items[key] = value
    elif isinstance(held, DictV):
        held.items[key] = (held.items[key][0], value)
    else:
        held[str(key)] = value
