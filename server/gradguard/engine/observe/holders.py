"""Who would notice if a write made a new tensor instead of changing the old one.

A write out of place rebinds one name. That is the same program only if this name is all that leads to the
written memory, so at each write the places from which the program can still reach it are looked up:

    y, self.h, xs[0]    from the running function, as it would spell it
    ^y                  from elsewhere: a caller, a closure, another file's globals

together with reasons for which a new tensor would not do although one name alone leads to it. What the runs
of an entry see of the same write is added up, since an edit changes all of them.

To look takes longer than all else about a write, and only a finding asks for it. So it is done where a write can be
the matter of one: see `state.watch.Watch`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from gradguard.engine.domain.classes import guards, kind_of
from gradguard.engine.domain.sharing import ELSEWHERE, NOBODY, Sharing
from gradguard.engine.domain.tensors import Memory, Place, Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    BuiltinMethod,
    ClassV,
    ContextV,
    DictV,
    External,
    Frame,
    FunctionV,
    Globals,
    ImportV,
    Instance,
    IteratorV,
    LazyV,
    ListV,
    Method,
    ModuleV,
    NativeV,
    PartialV,
    Sym,
    TorchName,
    TupleV,
    Value,
)
from gradguard.engine.state.run import Run

MAX_VISITS = 1000
MAX_NAMES = 1000
"""Variables after which nobody looks on who shares a written memory: each write looks through all of them."""
MAX_PLACES = 64
"""Places that lead to one memory after which nobody looks for more: no rewrite of a write binds so many anew."""
MAX_LOOKS = 16
"""Executions of one statement after which nobody looks who shares what it writes."""
MAX_ALL_VISITS = 400_000
"""Values, on a whole path, after which nobody looks any more. It is no work of the run: nothing else hangs on it."""


_WINDOWS = frozenset({"unfold", "as_strided"})
"""Views whose elements may lie in the same memory without having been expanded."""


def note(
    run: Run,
    target: Tensor,
    place: Place,
    operands: Iterable[Tensor],
    maker: Place | None,
    *,
    again: bool = False,
    refused: bool = False,
) -> None:
    """Remember who shares `target` at a write; `maker` is where the module that writes was made.

    again: the op reads the target a second time, and not only at the place that it writes. refused: by torch.
    """
    at = place.node if maker is None else maker.node
    known = run.sharing.get(at)
    if known is not None and "unknown" in known.reasons:
        return
    operands = tuple(operands)
    found = NOBODY
    if run.watch.worth(at, run.calls, refused or target.memory.saved):
        looked = run.looked[at] = run.looked.get(at, 0) + 1
        looks = looked <= MAX_LOOKS and run.looks < MAX_ALL_VISITS
        found = sharing(run, target, operands) if looks else Sharing(reasons=frozenset({"unknown"}))
    again = again or any(one is not target and one.memory is target.memory for one in operands)
    if target.expanded is not False or target.view_op in _WINDOWS:
        found = found | Sharing(reasons=frozenset({"overlap"}))
    if again:
        found = found | Sharing(reasons=frozenset({"reread"}))
    run.sharing[place.node] = run.sharing.get(place.node, NOBODY) | found
    if maker is not None:
        # The flag of a module may go only if each call rebinds what it wrote, as `x = self.relu(x)` does.
        left = Sharing(found.slots - rebound(run.statement), found.reasons)
        run.sharing[maker.node] = run.sharing.get(maker.node, NOBODY) | left


def refused(run: Run, place: Place) -> None:
    """Remember that an op out of place may refuse the arguments of a write."""
    run.sharing[place.node] = run.sharing.get(place.node, NOBODY) | Sharing(reasons=frozenset({"refused"}))


def shown(run: Run, values: Iterable[Value]) -> None:
    """Remember that a person is shown these values: what is told of a module names the flags of all in it."""
    waiting = list(values)
    seen: set[int] = set()
    while waiting and len(seen) < MAX_VISITS:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (ListV, TupleV)):
            waiting += value.items
        elif isinstance(value, DictV):
            waiting += (one for _, one in value.items.values())
        elif isinstance(value, Instance) and kind_of(value) == "Module":
            waiting += (one for one in value.attributes.values() if not isinstance(one, Tensor))
            at = value.made.node if value.made is not None else None
            if at is not None and _has_flag(at):
                run.sharing[at] = run.sharing.get(at, NOBODY) | Sharing(reasons=frozenset({"shown"}))


def _has_flag(maker: ast.AST) -> bool:
    """Whether a module may be made there to write its input."""
    if not isinstance(maker, ast.Call):
        return False
    given = any(isinstance(arg, ast.Constant) and arg.value is True for arg in maker.args)
    return given or any(keyword.arg == "inplace" for keyword in maker.keywords)


def note_index(run: Run, target: Tensor, parts: Sequence[Value], value: Value, place: Place) -> None:
    """Remember which function, if any, puts `value` into a new tensor as `target[parts] = value` does."""
    against = set()
    rank = _indexed_rank(target, parts)
    if rank is None:
        against.add("index")
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, Tensor) or only.dtype != "bool" or not _same_shape(only, target):
        against.add("mask")
    if not isinstance(value, (int, float)) and not (isinstance(value, Sym) and value.kind in _NUMBERS):
        against.add("number")
    if isinstance(only, Tensor) and only.contiguous is not target.contiguous:
        against.add("layout")
    if rank is None or not isinstance(value, Tensor) or not _can_be_put(value, target, rank):
        against.add("value")
    run.sharing[place.node] = run.sharing.get(place.node, NOBODY) | Sharing(reasons=frozenset(against))


def _indexed_rank(target: Tensor, parts: Sequence[Value]) -> int | None:
    """Dimensions of `target[parts]`; None where one of the parts is no tensor that can index, or a shape is unknown."""
    if target.shape is None:
        return None
    rank, ranks = len(target.shape), [0]
    for part in parts:
        if not isinstance(part, Tensor) or part.shape is None or part.dtype not in _INDICES:
            return None
        rank -= len(part.shape) if part.dtype == "bool" else 1
        ranks.append(1 if part.dtype == "bool" else len(part.shape))
    return rank + max(ranks) if rank >= 0 else None


def _can_be_put(value: Tensor, target: Tensor, rank: int) -> bool:
    """Whether `index_put` takes a value where an assignment to an index would make it fit."""
    alike = value.dtype is not None and value.dtype == target.dtype and value.device == target.device
    return alike and value.shape is not None and len(value.shape) <= rank


_INDICES = ("int64", "int32", "bool")
_NUMBERS = ("int", "float", "number")


def _same_shape(one: Tensor, other: Tensor) -> bool:
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return False
    return all(isinstance(mine, int) and mine == theirs for mine, theirs in zip(one.shape, other.shape))


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
    for step, value in _leading_to(run, target.memory):
        if step.lent:
            reasons.add("held")
        if step.guarded:
            reasons.add("guarded")
        if value is None:
            reasons.add("unknown")
        elif isinstance(value, ArrayV):
            slots.add(step.spelled())
        elif isinstance(value, Tensor) and not _apart(value, target):
            slots.add(step.spelled())
            held[value.number] = value
        if len(slots) > MAX_PLACES:
            reasons.add("unknown")
            break
    if target.memory.outside or any(one.memory is target.memory for one in _given(run)):
        reasons.add("argument")
    if target.memory.held or run.marks.by_name:
        reasons.add("held")
    for one in held.values():
        reasons.update(_reasons(run, one))
    others = [one for one in operands if one is not target]
    if target.dtype in _RANKS:
        reasons.update({"whole"} if others else {"whole", "alone"})
        if target.dtype == "bool":
            reasons.add("truth")
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
    if tensor.attributes:
        yield "own"
    if tensor.base is not None:
        yield "view"
    if tensor.requires_grad is False and (tensor.base is None or tensor.base.requires_grad is False):
        return
    if run.modes.grad is not True or run.modes.inference:
        yield "no-grad"
    # What may be a view may as well be the tensor itself (`atleast_2d`).
    itself = tensor.base is not None and tensor.base.leaf is not False and not tensor.alias_sure
    if tensor.leaf is True or (tensor.leaf is None and tensor.node is None) or itself:
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


class _Step:
    """How a value is reached: a name, or a step from what holds it. Spelled out only where it matters."""

    __slots__ = ("around", "held_by", "key", "kind", "lent")

    def __init__(
        self, around: _Step | None, key: object, kind: str = "", *, lent: bool = False, held_by: Value = None
    ) -> None:
        self.around = around
        self.key = key
        self.kind = kind
        self.lent: bool = lent or (around is not None and around.lent)
        """Code that is not read can take it, too."""
        self.held_by = held_by

    @property
    def guarded(self) -> bool:
        """Whether binding it anew runs code of the program, or is refused."""
        return (
            self.kind == "."
            and isinstance(self.held_by, Instance)
            and guards(self.held_by.cls, str(self.key))
        )

    def spelled(self, *, inner: bool = False) -> str:
        """The path as the running function would write it. An item of a tuple cannot be bound, what is in it may."""
        if self.around is None:
            return f"{self.kind}{self.key}"
        path = self.around.spelled(inner=True)
        if self.kind in ("[]", "()"):
            return f"{ELSEWHERE if self.kind == '()' and not inner else ''}{path}[{self.key!r}]"
        return f"{path}.{self.key}" if self.kind == "." else f"{ELSEWHERE}{path}"


def _leading_to(run: Run, memory: Memory) -> Iterator[tuple[_Step, Value]]:
    """Every place from which the program reaches a memory, the running function's first; None when there is too much.

    Each object is looked into once; a tensor counts for each place that holds it.
    """
    seen: set[int] = set()
    visits = 0
    lent = run.marks.lent_names
    for count, (mark, name, root) in enumerate(_names(run, memory)):
        run.looks += 1
        if count > MAX_NAMES:
            yield _Step(None, name, mark), None
            return
        if _inert(root) or (type(root) is Tensor and _leads_elsewhere(root, memory)):
            continue
        stack: list[tuple[_Step, Value]] = [(_Step(None, name, mark, lent=name in lent), root)]
        while stack:
            step, value = stack.pop()
            if isinstance(value, Sym) and value.tensor is not None:
                value = value.tensor
            if isinstance(value, Tensor):
                if value.memory is memory:
                    yield step, value
                if value.grad is None and value.attributes is None:
                    continue
            elif isinstance(value, ArrayV):
                if value.memory_of is not None and value.memory_of.memory is memory:
                    yield step, value
                continue
            if id(value) in seen:
                continue
            seen.add(id(value))
            visits += 1
            run.looks += 1
            if visits > MAX_VISITS:
                yield step, None
                return
            escaped = isinstance(value, (ListV, DictV, Instance)) and value.escaped
            for key, kind, one in _parts(value):
                run.looks += 1
                # Most of what a network holds are its parameters.
                if _leads_elsewhere(one, memory) if type(one) is Tensor else _inert(one):
                    continue
                if id(one) in seen and type(one) not in _COUNTED:
                    continue
                at = (
                    _Step(step, key, kind, lent=escaped, held_by=value)
                    if kind
                    else _Step(None, key, ELSEWHERE)
                )
                stack.append((at, one))


_COUNTED = frozenset({Tensor, Sym, ArrayV})
"""What counts for each place that holds it."""
_PLAIN = frozenset({type(None), bool, int, float, str, bytes, TorchName, External, ModuleV, ImportV, LazyV})
"""Values that hold nothing."""


def _leads_elsewhere(tensor: Tensor, memory: Memory) -> bool:
    """Whether a tensor is seen at a glance not to lead to a memory, as nearly all of a long script are."""
    if tensor.memory is memory or tensor.attributes is not None:
        return False
    grad = tensor.grad
    return grad is None or (type(grad) is Tensor and _leads_elsewhere(grad, memory))


def _inert(value: Value) -> bool:
    return type(value) in _PLAIN or (
        type(value) is FunctionV and value.scope is None and not value.defaults and not value.attributes
    )


def _names(run: Run, memory: Memory) -> Iterator[tuple[str, str, Value]]:
    """(mark, name, value) of every variable that may lead to a memory, those of the running function without the mark.

    Globals that the running entry never touched can lead to nothing that it made.
    """
    current = run.frames[-1] if run.frames else None
    done: set[int] = set()
    declared: dict[str, int] = {}
    waiting: list[Frame] = list(run.frames[:-1])
    if current is not None:
        done.add(id(current.variables))
        declared = {name: id(home.variables) for name, home in current.outer_names.items()}
        for name, value in current.variables.items():
            if name not in declared:
                yield "", name, value
        for name, home in current.outer_names.items():
            if name in home.variables:
                yield "", name, home.variables[name]
        if current.parent is not None:
            waiting.append(current.parent)
    waiting += run.suspended
    depth = len(run.frames)
    for around, values in run.pending:
        if around < depth:
            for value in values:
                yield ELSEWHERE, "", value
    others: list[dict[str, Value]] = []
    while waiting:
        frame = waiting.pop()
        others += [frame.variables, frame.namespace.variables]
        if frame.parent is not None:
            waiting.append(frame.parent)
    if current is not None:
        others.append(current.namespace.variables)
    others += [namespace.variables for namespace in run.namespaces.values()]
    for variables in others:
        if id(variables) in done:
            continue
        done.add(id(variables))
        for name, value in _reaching(variables, memory):
            if declared.get(name) != id(variables):
                yield ELSEWHERE, name, value


def _reaching(variables: dict[str, Value], memory: Memory) -> Iterable[tuple[str, Value]]:
    if isinstance(variables, Globals) and not memory.shared:
        return variables.touched()
    return variables.items()


def _parts(value: Value) -> Iterator[tuple[object, str, Value]]:
    """What a value holds, as (key, kind, value) of a `_Step` from there; without a kind, what a closure sees."""
    if isinstance(value, (Instance, ClassV)):
        for name, one in value.attributes.items():
            yield name, ".", one
    elif isinstance(value, (ListV, TupleV)):
        for index, one in enumerate(value.items):
            yield index, "()" if isinstance(value, TupleV) else "[]", one
    elif isinstance(value, DictV):
        for key, one in value.items.values():
            yield key, "[]", one
            if isinstance(key, (Tensor, TupleV)):
                yield "", "^", key
    elif isinstance(value, Tensor):
        for name, held in (value.attributes or {}).items():
            yield name, ".", cast("Value", held)
        yield "grad", ".", cast("Value", value.grad)
    elif isinstance(value, Sym):
        for name, one in (*value.attributes.items(), *value.items.items()):
            yield name, ".", one
    elif isinstance(value, BuiltinMethod):
        yield "", "^", value.receiver
    elif isinstance(value, ContextV):
        yield "", "^", value.value
    elif isinstance(value, NativeV):
        for one in value.over:
            yield "", "^", one
    elif isinstance(value, IteratorV):
        for one in value.over:
            yield "", "^", one
        for name, one in value.frame.variables.items() if value.frame is not None else ():
            yield name, "", one
    elif isinstance(value, Method):
        yield "", "^", value.receiver
        yield "", "^", value.function
    elif isinstance(value, PartialV):
        for one in (value.function, *value.args, *value.kwargs.values()):
            yield "", "^", one
    elif isinstance(value, FunctionV):
        for one in (*value.defaults.values(), *value.attributes.values()):
            yield "", "^", one
        scope = value.scope
        while scope is not None:
            if scope.function is not None:
                for name, one in scope.variables.items():
                    yield name, "", one
            scope = scope.parent


def is_tuple(run: Run, text: str) -> bool:
    """Whether a name, or an attribute of one, holds a tuple now, as the running function sees it."""
    name, *rest = text.split(".")
    home = run.frames[-1].find(name) if run.frames and name else None
    value: Value = home.variables[name] if home is not None else None
    for attribute in rest:
        value = value.attributes.get(attribute) if isinstance(value, Instance) else None
    return isinstance(value, TupleV)
