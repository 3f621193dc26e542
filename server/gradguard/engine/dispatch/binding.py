"""Calls, and matching their arguments to one form of an op as torch's argument parser does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradguard.engine.autograd import machine
from gradguard.engine.autograd.plan import plan
from gradguard.engine.dispatch import shapes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import known_truth
from gradguard.engine.domain.tensors import Tensor, Tri, both
from gradguard.engine.domain.values import (
    ArrayV,
    DictV,
    Instance,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.state.coerce import constant, is_number
from gradguard.engine.state.run import Run
from gradguard.ops.model import ALWAYS, Condition, Form, Kind, Op, Param


@dataclass(slots=True)
class Bound:
    """A call matched to a form: parameter name -> value and expression."""

    values: dict[str, Value]
    exprs: dict[str, ast.AST | None]
    given: set[str]
    module: Instance | None = None
    open: frozenset[str] = frozenset()
    """Parameters for a tensor that got an unknown value where another form takes a number as well."""

    def tensors(self, role: str) -> list[Tensor]:
        """Tensors in a role; several for a list of tensors, one of them for `hx[0]`."""
        if role[-1] == "]":
            item = self.item(role)
            return [] if item is self.values.get(role.partition("[")[0]) else tensors_in(item)
        if self.module is not None and role.startswith("self."):
            value = self.module.attributes.get(role[5:])
        else:
            value = self.values.get(role)
        return [value] if type(value) is Tensor else tensors_in(value)

    def item(self, role: str) -> Value:
        """The element of a list that `hx[0]` names; of what is no list of known length, the whole."""
        whole, _, index = role[:-1].partition("[")
        value = self.values.get(whole)
        if isinstance(value, (ListV, TupleV)) and not value.open:
            return value.items[int(index)] if int(index) < len(value.items) else None
        return value


def choose(run: Run, op: Op, call: Call, *, module: Instance | None = None) -> tuple[Form, Bound] | None:
    """The first form that accepts the arguments; a weak match only where no strong one exists."""
    weak: tuple[Form, Bound] | None = None
    for form in op.forms:
        bound, strength = bind(form, call)
        if bound is None:
            continue
        bound.module = module
        fits = holds(run, form.given, bound)
        if fits is False:
            continue
        strength = strength and fits is True
        if strength:
            if len(op.forms) > 1:
                bound.open = _open(op, form, bound, call)
            return form, bound
        if weak is None:
            weak = form, bound
    return weak


def _open(op: Op, form: Form, bound: Bound, call: Call) -> frozenset[str]:
    unknown = {
        param.name: value
        for param in form.params[1:]
        if param.kind is Kind.TENSOR
        and isinstance(value := bound.values.get(param.name), Sym)
        and value.kind == "any"
        and value.tensor is None
    }
    names: set[str] = set()
    for other in op.forms if unknown else ():
        taken, strong = bind(other, call) if other is not form else (None, False)
        if taken is None or not strong:
            continue
        plain = [taken.values.get(param.name) for param in other.params if param.kind is not Kind.TENSOR]
        names.update(name for name, value in unknown.items() if any(value is each for each in plain))
    return frozenset(names)


def bind(form: Form, call: Call) -> tuple[Bound | None, bool]:
    """Match arguments to parameters as torch's argument parser does. Second result: no guess was needed."""
    args, kwargs = call.args, call.kwargs
    count = len(args)
    planned = plan(form)
    if kwargs and not call.open_args and not planned.names.issuperset(kwargs):
        return None, False
    values: dict[str, Value] = {}
    exprs: dict[str, ast.AST | None] = {}
    strong = True
    index = 0
    for param in form.params:
        name = param.name
        if kwargs and name in kwargs:
            value, expr = kwargs[name], call.kwexprs.get(name)
        elif index < count and not param.keyword_only:
            value, expr = args[index], call.exprs[index] if index < len(call.exprs) else None
            index += 1
            if index < count:
                rest = args[index:]
                if (param.kind is Kind.INTS and all(accepts_int(item) for item in (value, *rest))) or (
                    param.variadic
                    and param.kind in (Kind.TENSORS, Kind.ANY)
                    and not isinstance(value, (ListV, TupleV))
                ):
                    value = TupleV((value, *rest))
                    index = count
        elif param.default is not None or param.optional or call.open_args:
            continue
        else:
            return None, False
        if isinstance(value, Sym) and value.tensor is not None:
            # It has been used as one: it stands for a number, or an entry of a size, as any other does.
            value = value.tensor
        if type(value) is not Tensor or param.kind is not Kind.TENSOR:
            verdict = accepts(param, value)
            if verdict is None:
                return None, False
            strong = strong and verdict
        values[name] = value
        exprs[name] = expr
    if index < count:
        return None, False
    bound = Bound(values, exprs, set(exprs))
    for name, marked, default in planned.defaults:
        if name not in exprs:
            values[marked] = default
    return bound, strong


def accepts_int(value: Value) -> bool:
    """Whether the value can stand for one int of a size."""
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, (Sym, Tensor))


def accepts(param: Param, value: Value) -> bool | None:
    """True: fits; False: fits by conversion or guess; None: does not fit."""
    kind = param.kind
    if kind is Kind.ANY:
        return True
    if value is None:
        if param.optional or param.default == "None":
            return True
        # Python functions hand on what they get: `F.normalize(x, 2.0, None)` reduces everything.
        return False if kind in (Kind.INT, Kind.INTS, Kind.NUMBER, Kind.FLOAT, Kind.BOOL) else None
    if isinstance(value, Sym):
        return _accepts_unknown(kind, value)
    if kind is Kind.TENSOR:
        return (
            True
            if isinstance(value, Tensor)
            else (False if is_number(value) or isinstance(value, ArrayV) else None)
        )
    if kind is Kind.MASK:
        return _mask(value)
    if kind is Kind.SLICES:
        return _slices(value)
    if kind is Kind.TENSORS:
        if isinstance(value, (ListV, TupleV)):
            return (
                True if all(isinstance(item, (Tensor, Sym)) or item is None for item in value.items) else None
            )
        return False if isinstance(value, Tensor) else None
    if kind in (Kind.NUMBER, Kind.FLOAT, Kind.INT):
        if isinstance(value, TorchName):
            # `F.softmax(x, dtype=torch.float32)`: a dtype is annotated as an int there.
            return False if kind is Kind.INT and shapes.is_dtype(value.path) else None
        if isinstance(value, str):
            # `norm(p="fro")`
            return True if (param.default or "").startswith("'") else None
        if isinstance(value, float) and kind is Kind.INT:
            return None
        return True if is_number(value) else (False if isinstance(value, Tensor) else None)
    if kind is Kind.INTS:
        if isinstance(value, (ListV, TupleV)):
            return None if any(isinstance(item, (float, str)) for item in value.items) else True
        return (
            True
            if isinstance(value, int) and not isinstance(value, bool)
            else (False if isinstance(value, Tensor) else None)
        )
    if kind is Kind.BOOL:
        # Python functions take anything for a flag; it counts by its truth.
        return (
            True
            if isinstance(value, bool)
            else (False if isinstance(value, (int, float, str, ListV, TupleV, TorchName, Tensor)) else None)
        )
    if kind is Kind.STR:
        return True if isinstance(value, str) else None
    if kind is Kind.DTYPE:
        return True if isinstance(value, TorchName) and shapes.is_dtype(value.path) else None
    return None


def _mask(value: Value) -> bool | None:
    if isinstance(value, TupleV) and len(value.items) == 1:
        value = value.items[0]
    if not isinstance(value, Tensor):
        return None
    return True if value.dtype in ("bool", "uint8") else (False if value.dtype is None else None)


def _slices(value: Value) -> bool | None:
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, (Tensor, ListV, bool, str)):
            return None
        if isinstance(one, TupleV) and id(one) not in seen:
            seen.add(id(one))
            waiting += one.items
    return True


def _accepts_unknown(kind: Kind, value: Sym) -> bool | None:
    known = value.kind
    if known == "any":
        return not (kind is Kind.STR or kind is Kind.DTYPE)
    if known == "tensor":
        return True if kind is Kind.TENSOR else (False if kind is Kind.TENSORS else None)
    if known in ("int", "number", "bool", "index"):
        if kind in (Kind.NUMBER, Kind.INT, Kind.FLOAT, Kind.INTS, Kind.BOOL):
            return True
        return False if kind is Kind.TENSOR else None
    if known == "str":
        return True if kind is Kind.STR else None
    if known == "dtype":
        return True if kind is Kind.DTYPE else None
    if known == "device":
        return None
    return False


def unknown(value: Value) -> bool:
    """An unknown value that may be a tensor that requires grad."""
    return isinstance(value, Sym) and value.tensor is None and value.kind == "any" and not value.data


def holds(
    run: Run,
    when: Condition,
    bound: Bound,
    *,
    source: Tensor | None = None,
    op: Op | None = None,
    of: int | None = None,
) -> Tri:
    """Truth of a condition for these arguments; `of`: asked about that one of a list of tensors."""
    if when == ALWAYS:
        return True
    found: Tri = False
    for clause in _parse(when) if when else ():
        holding: Tri = True
        for atom in clause:
            fact = _atom(run, atom, bound, source, op, of)
            if fact is False:
                holding = False
                break
            if fact is None:
                holding = None
        if holding is True:
            return True
        if holding is None:
            found = None
    return found


def rule_out(when: Condition, bound: Bound) -> None:
    """Take a condition for false: a flag that alone decides it has its other value."""
    parsed = _parse(when)
    if len(parsed) == 1 and len(parsed[0]) == 1:
        kind, name, literal = parsed[0][0]
        if isinstance(literal, bool) and name in bound.values:
            bound.values[name] = literal is (kind != "eq")


@lru_cache(maxsize=4096)
def _parse(when: Condition) -> tuple[tuple[tuple[str, str, Value], ...], ...]:
    clauses = []
    for clause in when:
        atoms: list[tuple[str, str, Value]] = []
        for atom in clause.split(" & "):
            name, sep, literal = atom.partition("!=")
            if sep:
                atoms.append(("ne", name, constant(literal)))
                continue
            name, sep, literal = atom.partition("=")
            if sep:
                atoms.append(("eq", name, constant(literal)))
            else:
                atoms.append(("nograd", atom[1:], None) if atom.startswith("!") else ("grad", atom, None))
        clauses.append(tuple(atoms))
    return tuple(clauses)


@lru_cache(maxsize=4096)
def gradients(when: Condition) -> frozenset[str]:
    """Arguments that a condition asks to require grad."""
    return frozenset(name for clause in _parse(when) for kind, name, _ in clause if kind == "grad") - {
        "*",
        "?",
    }


_MEMORY_FACTS = frozenset({"contiguous", "same_dtype", "same_device", "same_shape", "viewable"})


def _kind(tensor: Tensor) -> str | None:
    """What its numbers are, in the words of the conditions."""
    dtype = tensor.dtype
    if dtype is None:
        return None
    if dtype == "bool" or dtype.startswith("complex"):
        return dtype[:7]
    return "float" if tensor.floating else "int"


_TENSOR_FACTS: dict[str, Callable[[Tensor], object]] = {
    "ndim": lambda t: len(t.shape) if t.shape is not None else None,
    "kind": _kind,
    "dtype": lambda t: t.dtype,
    "contiguous": lambda t: t.contiguous,
}
"""Facts of a tensor that conditions compare; None where they are not known."""


def _atom(
    run: Run,
    atom: tuple[str, str, Value],
    bound: Bound,
    source: Tensor | None,
    op: Op | None,
    of: int | None = None,
) -> Tri:
    kind, name, literal = atom
    if kind == "nograd":
        needs = _atom(run, ("grad", name, None), bound, source, op)
        return None if needs is None else not needs
    if kind == "grad":
        if name == "*":
            return True
        if name == "?":
            return None
        if name in _MEMORY_FACTS:
            return shapes.memory_fact(name, source, bound.values, op.name if op else "")
        one = name[-1] == "]"
        given = bound.item(name) if one else bound.values.get(name)
        if unknown(given) or (one and isinstance(given, (ListV, TupleV))):
            return both(run.modes.grad, None)
        return machine.receives(run, bound.tensors(name))
    role, _, fact = name.rpartition(".")
    value: Any
    if fact == "others":
        return _others(run, (kind, role, literal), bound, of)
    if role and fact in _TENSOR_FACTS:
        facts = {_TENSOR_FACTS[fact](t) for t in bound.tensors(role)}
        if not facts and not isinstance(bound.values.get(role), Sym):
            return kind == "ne"
        if len(facts) != 1 or None in facts:
            return None
        value = facts.pop()
    elif name.startswith("self.") and bound.module is not None:
        value = bound.module.training if name == "self.training" else bound.module.attributes.get(name[5:])
    elif name in bound.values:
        value = bound.values[name]
    else:
        value = _default(bound, name)
    if isinstance(value, Sym):
        return None
    if isinstance(literal, bool) and not isinstance(value, bool):
        flag = known_truth(value)
        return None if flag is None else (flag is literal) is (kind == "eq")
    if isinstance(value, (ListV, TupleV)) and is_number(literal) and value.items and not value.open:
        # `(1, 1)` for a size says what `1` says.
        if all(item == literal for item in value.items if not isinstance(item, Sym)):
            if any(isinstance(item, Sym) for item in value.items):
                return None
            equal = True
        else:
            equal = False
    elif isinstance(value, (Tensor, ListV, TupleV, DictV, Instance)):
        equal = False
    else:
        equal = (type(value) is type(literal) and value == literal) or (
            is_number(value) and is_number(literal) and value == literal
        )
    return equal if kind == "eq" else not equal


def others(bound: Bound, role: str, of: int) -> list[Value]:
    """What stands in a list next to one of its elements."""
    value = bound.values.get(role)
    return (
        [item for i, item in enumerate(value.items) if i != of] if isinstance(value, (ListV, TupleV)) else []
    )


@lru_cache(maxsize=4096)
def by_element(when: Condition) -> bool:
    """Whether a condition asks what the other tensors of the list require."""
    return any(name.endswith(".others") for clause in _parse(when) for _, name, _ in clause)


def _others(run: Run, atom: tuple[str, str, Value], bound: Bound, of: int | None) -> Tri:
    """How many of the other tensors of a list get a gradient: `all`, `some` or `none`."""
    kind, role, literal = atom
    value = bound.values.get(role)
    if of is None or not isinstance(value, (ListV, TupleV)):
        return None
    needs = [
        both(run.modes.grad, None) if unknown(item) else machine.receives(run, tensors_in(item))
        for item in others(bound, role, of)
    ]
    if value.open:
        needs.append(both(run.modes.grad, None))
    possible = {
        word
        for word, may in (
            ("none", True not in needs),
            ("all", bool(needs) and False not in needs),
            ("some", _mixed(needs)),
        )
        if may
    }
    if literal not in possible:
        return kind == "ne"
    return None if len(possible) > 1 else kind == "eq"


def _mixed(needs: list[Tri]) -> bool:
    """Whether some may be true while others are false."""
    return len(needs) > 1 and any(n is not False for n in needs) and any(n is not True for n in needs)


def _default(bound: Bound, name: str) -> Value:
    # Defaults are visible to conditions, marked apart from arguments that were given.
    return bound.values.get("=" + name)
