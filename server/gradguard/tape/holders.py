"""Who would notice if a write made a new tensor instead of changing the old one.

A write out of place rebinds one name. That is the same program only if this name is all that leads to the
written memory, so at each write the places from which the program can still reach it are looked up:

    y, self.h, xs[0]    from the running function, as it would spell it
    ^y                  from elsewhere: a caller, a closure, another file's globals

together with reasons for which a new tensor would not do although one name alone leads to it. What the runs
of an entry see of the same write is added up, since an edit changes all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradguard.tape.domain import Place, Tensor
from gradguard.tape.frame import Frame
from gradguard.tape.values import (
    ArrayV,
    ClassV,
    DictV,
    FunctionV,
    Instance,
    ListV,
    Method,
    PartialV,
    Sym,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from gradguard.tape.run import Run

MAX_VISITS = 1000
ELSEWHERE = "^"


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is known of one writing statement, over all of its executions."""

    slots: frozenset[str] = frozenset()
    """Places that lead to the written memory."""
    reasons: frozenset[str] = frozenset()
    """`argument`: a caller passed it. `leaf`: the tensor is one. `no-grad`: written with grad mode off, and it
    has a history. `hooks`: hooks or a retained gradient are on it. `parameter`: the slot takes parameters
    only. `dtype`: an op out of place may give another dtype. `unknown`: too much to look through. `untyped`,
    `shape`: an op in place may be refused, since a dtype is not known, or an operand not seen to fit."""

    def __or__(self, other: Sharing) -> Sharing:
        return Sharing(self.slots | other.slots, self.reasons | other.reasons)


NOBODY = Sharing()


def note(run: Run, target: Tensor, place: Place, operands: Iterable[Tensor], maker: Place | None) -> None:
    """Remember who shares `target` at a write; `maker` is where the module that writes was made."""
    known = run.sharing.get(place.node)
    if known is not None and "unknown" in known.reasons and maker is None:
        return
    found = sharing(run, target, operands)
    run.sharing[place.node] = run.sharing.get(place.node, NOBODY) | found
    if maker is not None:
        # The flag of a module may go only if each call rebinds what it wrote, as `x = self.relu(x)` does.
        left = Sharing(found.slots - rebound(run.statement), found.reasons)
        run.sharing[maker.node] = run.sharing.get(maker.node, NOBODY) | left


def rebound(statement: ast.stmt | None) -> frozenset[str]:
    """Places that an assignment binds anew."""
    if not isinstance(statement, ast.Assign):
        return frozenset()
    return frozenset(ast.unparse(target) for target in statement.targets)


def sharing(run: Run, target: Tensor, operands: Iterable[Tensor]) -> Sharing:
    """Who shares the memory of `target` now."""
    slots: set[str] = set()
    reasons: set[str] = set()
    held = {target.number: target}
    for visits, (path, value) in enumerate(_reachable(run)):
        if visits >= MAX_VISITS:
            reasons.add("unknown")
            break
        if isinstance(value, Tensor) and value.memory is target.memory and not _apart(value, target):
            slots.add(path)
            held[value.number] = value
        elif isinstance(value, ArrayV) and value.memory_of is not None:
            if value.memory_of.memory is target.memory:
                slots.add(path)
    if target.memory.outside or any(one.memory is target.memory for one in _given(run)):
        reasons.add("argument")
    for one in held.values():
        reasons.update(_reasons(run, one))
    others = [one for one in operands if one is not target]
    if run.modes.autocast or any(_promotes(target, one) for one in others):
        reasons.add("dtype")
    if any(one.dtype is None for one in (target, *others)):
        reasons.add("untyped")
    if not all(_fits(one, target) for one in others):
        reasons.add("shape")
    return Sharing(frozenset(slots), frozenset(reasons))


def _apart(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are different parts that one call split a tensor into."""
    return one is not other and one.multi and other.multi and one.created is other.created


def _reasons(run: Run, tensor: Tensor) -> Iterator[str]:
    if tensor.hooks or tensor.retains_grad:
        yield "hooks"
    if tensor.parameter:
        yield "parameter"
    if tensor.requires_grad is False and (tensor.base is None or tensor.base.requires_grad is False):
        return
    if run.modes.grad is not True or run.modes.inference:
        yield "no-grad"
    if tensor.leaf is True or (tensor.leaf is None and tensor.node is None):
        yield "leaf"


_RANKS = {"bool": 0, "uint8": 1, "int8": 1, "int16": 1, "int32": 1, "int64": 1}


def _promotes(target: Tensor, operand: Tensor) -> bool:
    """Whether an op on the two may give another dtype than `target` has. Unknown ones count as alike."""
    if target.dtype is None or operand.dtype is None or target.dtype == operand.dtype:
        return False
    mine, other = _RANKS.get(target.dtype, 2), _RANKS.get(operand.dtype, 2)
    return other >= mine


def _fits(operand: Tensor, target: Tensor) -> bool:
    """Whether an operand is seen to broadcast into the shape of `target`."""
    if operand.shape is None or target.shape is None or len(operand.shape) > len(target.shape):
        return False
    pairs = zip(reversed(operand.shape), reversed(target.shape))
    return all(isinstance(mine, int) and (mine == 1 or mine == theirs) for mine, theirs in pairs)


def _given(run: Run) -> Iterator[Tensor]:
    """Tensors that the running function got as arguments."""
    frame: Frame | None = run.frames[-1] if run.frames else None
    for value in frame.given if frame is not None else ():
        for one in value.items if isinstance(value, (ListV, TupleV)) else (value,):
            found = one.tensor if isinstance(one, Sym) else one
            if isinstance(found, Tensor):
                yield found


def _reachable(run: Run) -> Iterator[tuple[str, Value]]:
    """Everything that the program can reach by names, each object once, the running function's first."""
    seen: set[int] = set()
    frames: set[int] = set()
    current = run.frames[-1] if run.frames else None
    if current is not None:
        frames.add(id(current.variables))
        for name, value in current.variables.items():
            if name not in current.outer_names:
                yield from _inside(name, value, seen)
        for name, home in current.outer_names.items():
            if name in home.variables:
                yield from _inside(name, home.variables[name], seen)
    waiting: list[Frame] = [frame for frame in run.frames if frame is not current]
    if current is not None and current.parent is not None:
        waiting.append(current.parent)
    declared = {name: id(home.variables) for name, home in (current.outer_names if current else {}).items()}
    while waiting:
        frame = waiting.pop()
        if frame.parent is not None:
            waiting.append(frame.parent)
        for variables in (frame.variables, frame.namespace.variables):
            if id(variables) in frames:
                continue
            frames.add(id(variables))
            for name, value in list(variables.items()):
                if declared.get(name) != id(variables):
                    yield from _inside(ELSEWHERE + name, value, seen)
    if current is not None and id(current.namespace.variables) not in frames:
        for name, value in list(current.namespace.variables.items()):
            if declared.get(name) != id(current.namespace.variables):
                yield from _inside(ELSEWHERE + name, value, seen)
    for namespace in run.namespaces.values():
        if id(namespace.variables) not in frames:
            frames.add(id(namespace.variables))
            for name, value in list(namespace.variables.items()):
                yield from _inside(ELSEWHERE + name, value, seen)


def _inside(path: str, value: Value, seen: set[int]) -> Iterator[tuple[str, Value]]:
    """A value and all that it holds. A tensor comes once for each place that holds it."""
    stack: list[tuple[str, Value]] = [(path, value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Sym) and value.tensor is not None:
            value = value.tensor
        if isinstance(value, (Tensor, ArrayV)):
            yield path, value
        if not isinstance(value, _HOLDERS) or id(value) in seen:
            continue
        seen.add(id(value))
        if not isinstance(value, Tensor):
            yield path, value
        stack.extend(_parts(path, value))


_HOLDERS = (Tensor, Sym, ListV, TupleV, DictV, Instance, ClassV, FunctionV, Method, PartialV)


def _parts(path: str, value: Value) -> list[tuple[str, Value]]:
    if isinstance(value, Tensor):
        parts = [(f"{path}.{name}", one) for name, one in (value.attributes or {}).items()]
        return [*parts, (f"{path}.grad", value.grad)] if value.grad is not None else parts
    if isinstance(value, Sym):
        return [
            (f"{path}{name}" if name[:1] == "[" else f"{path}.{name}", one)
            for name, one in value.facts.items()
        ]
    if isinstance(value, (ListV, TupleV)):
        return [(f"{path}[{index}]", one) for index, one in enumerate(value.items)]
    if isinstance(value, DictV):
        return [(f"{path}[{key!r}]", one) for key, one in value.items.values()]
    if isinstance(value, (Instance, ClassV)):
        return [(f"{path}.{name}", one) for name, one in value.attributes.items()]
    if isinstance(value, Method):
        return [(ELSEWHERE + path, value.receiver), (ELSEWHERE + path, value.function)]
    if isinstance(value, PartialV):
        held = (value.function, *value.args, *value.kwargs.values())
        return [(ELSEWHERE + path, one) for one in held]
    parts = [(ELSEWHERE + path, one) for one in value.defaults.values()]
    scope = value.scope
    while scope is not None:
        if scope.function is not None:
            parts += [(f"{ELSEWHERE}{name}", one) for name, one in scope.variables.items()]
        scope = scope.parent
    return parts


def is_tuple(run: Run, text: str) -> bool:
    """Whether a name, or an attribute of one, holds a tuple now, as the running function sees it."""
    name, *rest = text.split(".")
    home = run.frames[-1].find(name) if run.frames and name else None
    value: Value = home.variables[name] if home is not None else None
    for attribute in rest:
        value = value.attributes.get(attribute) if isinstance(value, Instance) else None
    return isinstance(value, TupleV)
