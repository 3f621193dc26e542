"""The module `operator`: Python's operators as functions, and functions that fetch, look up or call."""

from __future__ import annotations

import ast

from gradguard.engine.dispatch import torchcalls
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import MISSING, Frame, NativeV, TupleV, Value
from gradguard.engine.models.registry import Registry
from gradguard.engine.python import attributes, operators, subscripts
from gradguard.engine.state.run import Run

MODELS = Registry()

BINARY: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "pow": ast.Pow, "matmul": ast.MatMult,
    "floordiv": ast.FloorDiv, "mod": ast.Mod, "and_": ast.BitAnd, "or_": ast.BitOr, "xor": ast.BitXor,
    "lshift": ast.LShift, "rshift": ast.RShift,
}  # fmt: skip
IN_PLACE = {f"i{name.rstrip('_')}": name for name in BINARY}


def _subscript(call: Call, node: ast.AST) -> ast.Subscript:
    """`x[i]` for `getitem(x, i)`. One for each call, since a place is known by its node."""
    known: ast.Subscript | None = getattr(node, "_gradguard_subscript", None)
    if known is None:
        owner, key = (each if isinstance(each, ast.expr) else _UNNAMED for each in _operands(call, node))
        known = ast.copy_location(ast.Subscript(owner, key, ast.Load()), node)
        node._gradguard_subscript = known  # type: ignore[attr-defined]
    return known


def _attribute(node: ast.AST, name: str) -> ast.Attribute:
    """`_.name`, one for each call and name."""
    known: dict[str, ast.Attribute] | None = getattr(node, "_gradguard_attributes", None)
    if known is None:
        known = node._gradguard_attributes = {}  # type: ignore[attr-defined]
    if name not in known:
        known[name] = ast.copy_location(ast.Attribute(_UNNAMED, name, ast.Load()), node)
    return known[name]


_UNNAMED = ast.Name("_", ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _operands(call: Call, node: ast.AST) -> tuple[ast.AST, ast.AST]:
    first, second = [*call.exprs, None, None][:2]
    return first or node, second or node


@MODELS.external_function(*(f"operator.{name}" for name in BINARY))
def _binary(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    if len(call.args) != 2:
        return run.fresh()
    left, right = call.args
    return operators.binary(run, frame, BINARY[call.name], left, right, node, _operands(call, node))


@MODELS.external_function(*(f"operator.{name}" for name in IN_PLACE))
def _in_place(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`operator.iadd(x, y)` is `x += y` whose result is bound by nobody."""
    if len(call.args) != 2:
        return run.fresh()
    left, right = operators.known_tensor(call.args[0]), call.args[1]
    if isinstance(left, Tensor) and call.name != "imatmul":
        given = Call([left, right], {}, call.place, call.exprs, {})
        result = torchcalls.call_op(
            run, frame, f"Tensor.__{call.name}__", given, node, name=call.name, kind="augmented"
        )
        return torchcalls.unknown_op(run, call, call.name) if result is MISSING else left
    return operators.binary(run, frame, BINARY[IN_PLACE[call.name]], left, right, node, _operands(call, node))


@MODELS.external_function("operator.itemgetter")
def _itemgetter(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    keys = list(call.args)

    def fetch(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        owner = call.get(0, "obj")
        found = [_item(run, frame, owner, key, call, node) for key in keys]
        return found[0] if len(found) == 1 else TupleV(tuple(found))

    return NativeV(fetch, "itemgetter", tuple(keys))


@MODELS.external_function("operator.getitem")
def _getitem(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return _item(run, frame, call.args[0], call.args[1], call, node) if len(call.args) == 2 else run.fresh()


def _item(run: Run, frame: Frame, owner: Value, key: Value, call: Call, node: ast.AST) -> Value:
    return subscripts.get(run, frame, owner, key, _subscript(call, node))


@MODELS.external_function("operator.setitem")
def _setitem(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    if len(call.args) == 3:
        owner, key, value = call.args
        subscripts.put(run, frame, owner, key, value, _subscript(call, node))
    return None


@MODELS.external_function("operator.attrgetter")
def _attrgetter(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    names = list(call.args)
    if not all(isinstance(name, str) for name in names):
        return run.fresh()

    def look_up(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        found = []
        for name in names:
            value = call.get(0, "obj")
            for part in str(name).split("."):
                value = attributes.get(run, frame, value, part, _attribute(node, part))
            found.append(value)
        return found[0] if len(found) == 1 else TupleV(tuple(found))

    return NativeV(look_up, "attrgetter")


@MODELS.external_function("operator.methodcaller")
def _methodcaller(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name, given = call.args[0] if call.args else None, call
    if not isinstance(name, str):
        return run.fresh()

    def invoke(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        handed = Call(
            list(given.args[1:]), dict(given.kwargs), call.place, list(given.exprs[1:]), dict(given.kwexprs)
        )
        return run.models.method(run, frame, call.get(0, "obj"), name, handed, node)

    return NativeV(invoke, "methodcaller", (*given.args[1:], *given.kwargs.values()))
