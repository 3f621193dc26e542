"""Binary, unary, comparison and augmented operators."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable

from gradguard.engine.autograd import machine
from gradguard.engine.dispatch import graphless, torchcalls
from gradguard.engine.domain import spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import key_of, known_truth
from gradguard.engine.domain.keys import Key, root
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    DictV,
    External,
    Frame,
    Instance,
    ListV,
    Sym,
    TorchName,
    TupleV,
    Value,
    contents,
    tensors_in,
)
from gradguard.engine.domain.versions import VersionV
from gradguard.engine.observe import counting, graphs, holders, lifetime, reads
from gradguard.engine.python.enumerations import compared, is_member
from gradguard.engine.python.special import call_special
from gradguard.engine.python.truth import truth
from gradguard.engine.state import bounds
from gradguard.engine.state.coerce import as_tensor, is_number, on_host
from gradguard.engine.state.run import Run

_DUNDER = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.MatMult: "matmul",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_PYTHON: dict[type[ast.operator], Callable[..., Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_PYTHON_UNARY: dict[type[ast.unaryop], Callable[..., Value]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_PYTHON_COMPARE: dict[type[ast.cmpop], Callable[..., bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
SYMBOLS = {
    ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/=", ast.Pow: "**=", ast.MatMult: "@=", ast.FloorDiv: "//=",
    ast.Mod: "%=", ast.BitAnd: "&=", ast.BitOr: "|=", ast.BitXor: "^=", ast.LShift: "<<=", ast.RShift: ">>=",
}  # fmt: skip


def binary(
    run: Run,
    frame: Frame,
    op: type[ast.operator],
    left: Value,
    right: Value,
    node: ast.AST,
    exprs: tuple[ast.AST, ast.AST],
) -> Value:
    """`left op right`."""
    left, right = known_tensor(left), known_tensor(right)
    if isinstance(left, Tensor) or (isinstance(right, Tensor) and _joins_tensor(left)):
        return _tensor_binary(run, frame, op, left, right, node, exprs)
    if isinstance(left, str) and op is ast.Mod:
        return _percent(run, frame, left, right, node)
    if _is_plain(left) and _is_plain(right):
        return _fold(run, op, left, right)
    if isinstance(left, (ListV, TupleV)) and op in (ast.Add, ast.Mult):
        return _sequence(run, op, left, right, frame, node)
    if isinstance(right, (ListV, TupleV)) and op is ast.Mult:
        return _sequence(run, op, right, left, frame, node)
    if isinstance(left, DictV) and isinstance(right, DictV) and op is ast.BitOr:
        table = {**left.items, **right.items}
        return DictV(table, open=bounds.cut_table(run, table) or left.open or right.open)
    if isinstance(left, Instance) or isinstance(right, Instance):
        made = _instance_operator(run, frame, op, left, right, node)
        if made is not MISSING:
            return made
    if isinstance(left, ArrayV) or isinstance(right, ArrayV):
        return ArrayV(cuts=graphs.cuts_in(run, left) | graphs.cuts_in(run, right))
    return _unknown_binary(run, op, left, right)


def known_tensor(value: Value) -> Value:
    """The tensor of an unknown value that has already been used as one."""
    return value.tensor if isinstance(value, Sym) and value.tensor is not None else value


def _joins_tensor(value: Value) -> bool:
    return is_number(value) or isinstance(value, (Sym, Tensor))


def _is_plain(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, bytes, complex, VersionV))


def _fold(run: Run, op: type[ast.operator], left: Value, right: Value) -> Value:
    function = _PYTHON.get(op)
    if function is None:
        return run.fresh()
    return bounds.computed(run, function, left, right)


def _unknown_binary(run: Run, op: type[ast.operator], left: Value, right: Value) -> Value:
    kinds = {_kind(left), _kind(right)}
    kind = "any"
    if kinds <= {"int", "index", "number", "bool"}:
        kind = "number" if op is ast.Div or "number" in kinds else "int"
    elif "str" in kinds or "device" in kinds:
        kind = "str"
    data = (not isinstance(left, Sym) or left.data) and (not isinstance(right, Sym) or right.data)
    made = Sym(
        Key(*on_host(left, right), "op", op.__name__, key_of(left), key_of(right)),
        kind,
        data=data and isinstance(left, Sym) | isinstance(right, Sym),
    )
    cuts = graphs.cuts_in(run, left) | graphs.cuts_in(run, right)
    if cuts:
        made.cuts = cuts
    return graphless.mark(made, graphless.known(left, right))


def _kind(value: Value) -> str:
    if isinstance(value, Sym):
        return value.kind
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "number"
    return "str" if isinstance(value, str) else "other"


def _percent(run: Run, frame: Frame, left: str, right: Value, node: ast.AST) -> Value:

    holders.shown(run, (right,))
    for tensor in tensors_in(right):
        reads.host_read(run, frame, node, "format", tensor, implicit=True)
    return run.fresh("str")


def _sequence(
    run: Run, op: type[ast.operator], left: ListV | TupleV, right: Value, frame: Frame, node: ast.AST
) -> Value:
    run.weigh((left, right))
    if op is ast.Add and isinstance(right, (ListV, TupleV)):
        items: list[Value] = [*left.items, *right.items]
        is_open = bounds.cut(run, items) or left.open or right.open
    elif op is ast.Mult and isinstance(right, int) and not isinstance(right, bool):
        items = list(left.items) * min(max(right, 0), MAX_TIMES if left.items else 0)
        is_open = bounds.cut(run, items) or left.open or right > MAX_TIMES
    else:
        items, is_open = list(left.items), True
    if op is ast.Mult and right != 1:
        for tensor in tensors_in(left):
            tensor.memory.held = True  # it comes more than once
    if isinstance(left, TupleV):
        return TupleV(tuple(items), open=is_open)
    parts = [part for part in (left, right) if isinstance(part, ListV)]
    made = ListV(
        items,
        open=is_open,
        made=run.place(frame, node),
        trimmed=any(part.trimmed for part in parts),
        counted=any(part.counted for part in parts),
    )
    counting.grown(run, made)
    return made


MAX_TIMES = 8
"""Repetitions of the items of a list that are followed."""


def _instance_operator(
    run: Run, frame: Frame, op: type[ast.operator], left: Value, right: Value, node: ast.AST
) -> Value:
    name = _DUNDER.get(op)
    made = call_special(run, frame, left, f"__{name}__", [right], node)
    return made if made is not MISSING else call_special(run, frame, right, f"__r{name}__", [left], node)


def _tensor_binary(
    run: Run,
    frame: Frame,
    op: type[ast.operator],
    left: Value,
    right: Value,
    node: ast.AST,
    exprs: tuple[ast.AST, ast.AST],
) -> Value:
    name = _DUNDER[op]
    place = run.place(frame, node)
    if not isinstance(left, Tensor):
        if isinstance(left, Sym) and left.kind in ("any", "tensor"):
            left = as_tensor(run, left)
    if isinstance(right, Sym) and right.kind == "any" and not _maybe_number(right):
        right = as_tensor(run, right)
    if isinstance(left, Tensor):
        call = Call([left, right], {}, place, list(exprs), {})
        for spelled in (f"Tensor.__{name}__", f"operator.{name}", f"Tensor.{_METHOD.get(name, name)}"):
            result = torchcalls.call_op(run, frame, spelled, call, node)
            if result is not MISSING:
                return result
        return torchcalls.unknown_op(run, call, name)
    call = Call([right, left], {}, place, [exprs[1], exprs[0]], {})
    result = torchcalls.call_op(run, frame, f"Tensor.__r{name}__", call, node)
    if result is MISSING and name in ("add", "mul"):
        result = torchcalls.call_op(run, frame, f"Tensor.{name}", call, node)
    return torchcalls.unknown_op(run, call, name) if result is MISSING else result


_METHOD = {"truediv": "div", "mod": "remainder", "floordiv": "floor_divide", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}  # fmt: skip


def _maybe_number(value: Sym) -> bool:
    """A value never used as a tensor may be a number; then the op treats it as a scalar."""
    return value.tensor is None


def unary(run: Run, frame: Frame, op: type[ast.unaryop], value: Value, node: ast.UnaryOp) -> Value:
    """`-x`, `+x`, `~x`, `not x`."""
    value = known_tensor(value)
    if op is ast.Not:
        known = known_truth(value)
        if known is not None:
            return not known
        if isinstance(value, Tensor):
            truth(run, frame, value, node.operand)
            made = Sym(Key("not", Key("bool", key_of(value))), "bool")
            made.asked = value
            return made
        made = Sym(Key("not", key_of(value)), "bool")
        if isinstance(value, Sym) and value.trains is not None and root(value.key)[0] != "not":
            made.trains = value.trains
        return made
    if isinstance(value, Tensor):
        name = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}[op]
        call = Call([value], {}, run.place(frame, node), [node.operand], {})
        for spelled in (
            f"Tensor.__{name}__",
            f"Tensor.{'bitwise_not' if name == 'invert' else 'positive' if name == 'pos' else name}",
        ):
            result = torchcalls.call_op(run, frame, spelled, call, node)
            if result is not MISSING:
                return result
        return torchcalls.unknown_op(run, call, name)
    if is_number(value):
        return bounds.computed(run, _PYTHON_UNARY[op], value, kind="number")
    if isinstance(value, Sym):
        made = Sym(Key("u", op.__name__, value.key), value.kind, data=value.data)
        return graphless.mark(made, op is ast.Invert or graphless.known(value))
    return run.fresh()


def compare(
    run: Run, frame: Frame, op: type[ast.cmpop], left: Value, right: Value, node: ast.Compare
) -> Value:
    """One comparison."""
    if op in (ast.Is, ast.IsNot):
        same = _identical(left, right)
        if same is None:
            made = Sym(Key("is", *_ordered(key_of(left), key_of(right))), "bool")
            return made if op is ast.Is else Sym(Key("not", made.key), "bool")
        return same if op is ast.Is else not same
    left, right = compared(known_tensor(left)), compared(known_tensor(right))
    if op in (ast.In, ast.NotIn):
        return _contains(run, frame, op, left, right, node)
    if isinstance(left, Instance) or isinstance(right, Instance):
        own = _instance_compare(run, frame, op, left, right, node)
        if own is not MISSING:
            return own
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if not isinstance(left, Tensor):
            left, right = right, left
        call = Call([left, right], {}, run.place(frame, node), [node.left, node.comparators[0]], {})
        result = torchcalls.call_op(run, frame, f"Tensor.{_COMPARE[op]}", call, node)
        return torchcalls.unknown_op(run, call, _COMPARE[op]) if result is MISSING else result
    if _is_plain(left) and _is_plain(right):
        try:
            return _PYTHON_COMPARE[op](left, right)
        except TypeError:
            return op is ast.NotEq if op in (ast.Eq, ast.NotEq) else run.fresh("bool")
    index = _index_compare(op, left, right)
    if index is not None:
        return index
    if op in (ast.Eq, ast.NotEq) and isinstance(left, TupleV) and isinstance(right, TupleV):
        if all(map(_is_plain, (*left.items, *right.items))) and not (left.open or right.open):
            return (left.items == right.items) is (op is ast.Eq)
    if (
        op in (ast.Eq, ast.NotEq)
        and isinstance(left, (External, TorchName))
        and isinstance(right, (External, TorchName))
    ):
        return (left == right) is (op is ast.Eq)
    name = "Eq" if op in (ast.Eq, ast.NotEq) else op.__name__
    made = Sym(Key(*on_host(left, right), "cmp", name, key_of(left), key_of(right)), "bool")
    if op is ast.NotEq:
        made = Sym(Key("not", made.key), "bool")
    if any(isinstance(side, Sym) and side.counted for side in (left, right)):
        made.counted = True
    return made


def _instance_compare(
    run: Run, frame: Frame, op: type[ast.cmpop], left: Value, right: Value, node: ast.Compare
) -> Value:
    """A comparison that one side's own class defines, or of members of enumerations."""
    name = _COMPARE[op]
    made = call_special(run, frame, left, f"__{name}__", [right], node)
    if made is MISSING:
        made = call_special(run, frame, right, f"__{_MIRRORED.get(name, name)}__", [left], node)
    if made is MISSING and op is ast.NotEq:
        made = call_special(run, frame, left, "__eq__", [right], node)
        made = not made if isinstance(made, bool) else made
    if made is MISSING and op in (ast.Eq, ast.NotEq) and is_member(left) and is_member(right):
        return (left is right) is (op is ast.Eq)
    return made


def _index_compare(op: type[ast.cmpop], left: Value, right: Value) -> bool | None:
    """Comparisons of a loop's counter with its first value."""
    if (
        isinstance(left, Sym)
        and left.kind == "index"
        and isinstance(right, int)
        and left.later
        and right <= 0
    ):
        if op is ast.Eq:
            return False
        if op in (ast.NotEq, ast.Gt):
            return True
        if op is ast.GtE:
            return True
    return None


def _identical(left: Value, right: Value) -> bool | None:
    sym = left if isinstance(left, Sym) else right
    if isinstance(sym, Sym):
        other = right if sym is left else left
        if other is None and (sym.tensor is not None or sym.kind not in ("any", "str", "device", "dtype")):
            return False
        if isinstance(left, Sym) and isinstance(right, Sym) and left.key == right.key:
            return True
        return None
    if (left is None and _assumed(right)) or (right is None and _assumed(left)):
        return None
    if _is_plain(left) or _is_plain(right):
        return _is_plain(left) and _is_plain(right) and _equal(left, right)
    return left is right or (isinstance(left, (External, TorchName)) and _equal(left, right))


def _equal(left: object, right: object) -> bool:
    """Whether two constants or names are of one kind and equal."""
    return type(left) is type(right) and left == right


def _assumed(value: Value) -> bool:
    """A gradient that an earlier backward, not seen here, may have left."""
    return isinstance(value, Tensor) and value.grad_owner is not None and not value.sure


def _ordered(first: Hashable, second: Hashable) -> tuple[Hashable, Hashable]:
    return (first, second) if hash(first) <= hash(second) else (second, first)


def _contains(
    run: Run, frame: Frame, op: type[ast.cmpop], left: Value, right: Value, node: ast.Compare
) -> Value:
    known: bool | None = None
    own = call_special(run, frame, right, "__contains__", [left], node)
    right = contents(right)
    if own is not MISSING:
        known = known_truth(own)
    elif isinstance(left, Tensor):
        reads.host_read(run, frame, node, "bool", left, implicit=True)
    elif (
        isinstance(right, (ListV, TupleV))
        and not right.open
        and _is_plain(left)
        and all(map(_is_plain, right.items))
    ):
        known = left in right.items
    elif isinstance(right, (ListV, TupleV)) and not right.open and all(map(is_member, (left, *right.items))):
        known = any(left is item for item in right.items)
    elif isinstance(right, DictV):
        if token(left) in right.items:
            known = True
        elif not right.open and not isinstance(left, Sym):
            known = False
    elif isinstance(right, str) and isinstance(left, str):
        known = left in right
    if known is not None:
        return known is (op is ast.In)
    made = Sym(Key("in", key_of(left), key_of(right)), "bool")
    return made if op is ast.In else Sym(Key("not", made.key), "bool")


def augmented(
    run: Run, frame: Frame, op: type[ast.operator], left: Value, right: Value, node: ast.AugAssign
) -> tuple[Value, bool]:
    """`left op= right`: the value to store, and whether it was written in place."""
    left, right = known_tensor(left), known_tensor(right)
    if isinstance(left, Tensor):
        name = _DUNDER[op]
        if isinstance(right, Sym) and right.kind == "any" and not _maybe_number(right):
            right = as_tensor(run, right)
        call = Call([left, right], {}, run.place(frame, node), [node.target, node.value], {})
        if op is ast.MatMult:
            return _tensor_binary(run, frame, op, left, right, node, (node.target, node.value)), False
        for spelled in (f"Tensor.__i{name}__", f"Tensor.{_METHOD.get(name, name)}_"):
            result = torchcalls.call_op(run, frame, spelled, call, node, name=SYMBOLS[op], kind="augmented")
            if result is not MISSING:
                return left, True
        return torchcalls.unknown_op(run, call, name), False
    own = call_special(run, frame, left, f"__i{_DUNDER[op]}__", [right], node)
    if own is not MISSING:
        return own, False
    if isinstance(left, ListV) and op is ast.Add:
        if isinstance(right, (ListV, TupleV)):
            run.weigh((right,))
            for tensor in lifetime.bound_in(right):
                machine.stored(run, tensor, run.place(frame, node), spelling.source_text(node.target))
            left.items.extend(right.items)
            left.open = bounds.cut(run, left.items) or left.open or right.open
            counting.grown(run, left)
        else:
            left.open = True
        return left, True
    if isinstance(left, DictV) and isinstance(right, DictV):
        left.items.update(right.items)
        left.open = bounds.cut_table(run, left.items) or left.open
        return left, True
    if isinstance(left, ArrayV):
        if left.memory_of is not None:
            torchcalls.array_write(run, frame, left, node, SYMBOLS[op])
        return left, True
    own = call_special(run, frame, left, f"__i{_DUNDER[op]}__", [right], node)
    if own is not MISSING:
        return own, own is left
    return binary(run, frame, op, left, right, node, (node.target, node.value)), False
