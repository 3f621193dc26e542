"""Evaluating expressions to abstract values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import asks, key_of, known_truth
from gradguard.engine.domain.events import GradientAlias
from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.loops import Guard
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    BuiltinMethod,
    DictV,
    Frame,
    ListV,
    SliceV,
    Sym,
    TupleV,
    Value,
    contents,
)
from gradguard.engine.observe import holders, reads
from gradguard.engine.python import attributes, comprehensions, imports, literals, operators, subscripts
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.functions import make_function
from gradguard.engine.python.iteration import iterate
from gradguard.engine.python.names import assign_name
from gradguard.engine.python.truth import truth
from gradguard.engine.state import bounds
from gradguard.engine.state.path import BudgetExceeded
from gradguard.engine.state.run import Run
from gradguard.source.nodes import walk


def evaluate(run: Run, frame: Frame, node: ast.expr) -> Value:
    """Value of an expression; never fails on unknown operands."""
    # As `run.step`, which is not worth a call for each node.
    run.budget[0] -= 1
    if run.budget[0] < 0:
        raise BudgetExceeded
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return run.fresh()
    return handler(run, frame, node)


def lookup(run: Run, frame: Frame, name: str) -> Value:
    """A name's value: locals, closures, globals, builtins."""
    # Most names are the running function's own.
    home = frame if name in frame.variables and name not in frame.outer_names else frame.find(name)
    if home is not None:
        value = home.variables[name]
        if type(value) in imports.STAND_INS:
            value = imports.known(run, home.variables, name)
        if type(value) is Sym and value.reading is not None:
            reads.used(run, value.reading)
        return value
    variables = frame.namespace.variables
    if name in variables:
        return imports.known(run, variables, name)
    return imports.starred(run, frame.namespace, name)


def _constant(run: Run, frame: Frame, node: ast.Constant) -> Value:
    return bounds.constant(run, node.value)


def _name(run: Run, frame: Frame, node: ast.Name) -> Value:
    value = lookup(run, frame, node.id)
    if run.stale_grads and isinstance(value, Tensor) and value.number in run.stale_grads:
        kept, overwritten = run.stale_grads.pop(value.number)
        run.emit(GradientAlias(kept, False, node.id, overwritten))
    if run.trace is not None and isinstance(value, Tensor):
        run.trace.read(node, value)
    return value


def _attribute(run: Run, frame: Frame, node: ast.Attribute) -> Value:
    owner = evaluate(run, frame, node.value)
    return attributes.get(run, frame, owner, node.attr, node)


def _subscript(run: Run, frame: Frame, node: ast.Subscript) -> Value:
    owner = evaluate(run, frame, node.value)
    index = evaluate(run, frame, node.slice)
    return subscripts.get(run, frame, owner, index, node)


def _slice(run: Run, frame: Frame, node: ast.Slice) -> Value:
    parts = []
    for part in (node.lower, node.upper, node.step):
        value = evaluate(run, frame, part) if part is not None else None
        if isinstance(value, Tensor):
            reads.host_read(run, frame, part or node, "index", value, implicit=True)
        parts.append(value)
    return SliceV(*parts)


def _binop(run: Run, frame: Frame, node: ast.BinOp) -> Value:
    left = evaluate(run, frame, node.left)
    mark = run.pend([left])
    right = evaluate(run, frame, node.right)
    del run.pending[mark:]
    return operators.binary(run, frame, type(node.op), left, right, node, (node.left, node.right))


def _unary(run: Run, frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(run, frame, node.operand)
    return operators.unary(run, frame, type(node.op), value, node)


def _compare(run: Run, frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(run, frame, node.left)
    result: Value = True
    for op, expr in zip(node.ops, node.comparators):
        right = evaluate(run, frame, expr)
        result = operators.compare(run, frame, type(op), left, right, node)
        if expr is not node.comparators[-1] and isinstance(result, (bool, Tensor)):
            # `a < b < c` asks whether `a < b` holds before it looks at `c`.
            if not truth(run, frame, result, node, weak=True):
                return result
        left = right
    return result


def _boolop(run: Run, frame: Frame, node: ast.BoolOp) -> Value:
    wants = isinstance(node.op, ast.Or)
    value: Value = None
    guards = len(run.guards)
    try:
        for index, part in enumerate(node.values):
            value = evaluate(run, frame, part)
            if index == len(node.values) - 1:
                break
            if not asks(value):
                # What stands behind an unknown condition is evaluated on some passes only.
                run.guards.append(Guard(run.place(frame, node), known_truth(value) is None))
            if truth(run, frame, value, part) is wants:
                return value
    finally:
        del run.guards[guards:]
    return value


def _ifexp(run: Run, frame: Frame, node: ast.IfExp) -> Value:
    test = evaluate(run, frame, node.test)
    if isinstance(test, Sym) and _plain(node.body) and _plain(node.orelse):
        # Two constants, such as `"cuda" if available else "cpu"`: no need for two paths.
        taken = evaluate(run, frame, node.body)
        other = evaluate(run, frame, node.orelse)
        attributes.note_device(run, taken)
        attributes.note_device(run, other)
        if taken == other:
            return taken
        kind = "number" if isinstance(taken, (int, float)) else "str" if isinstance(taken, str) else "any"
        if attributes.is_device_text(taken) and attributes.is_device_text(other):
            kind = "device"
        return Sym(Key("if", test.key, key_of(taken), key_of(other)), kind)
    arm = node.body if truth(run, frame, test, node.test) else node.orelse
    if known_truth(test) is not None and not periodic(node.test):
        return evaluate(run, frame, arm)
    with guarded(run, frame, node, node.test, test):
        return evaluate(run, frame, arm)


@contextmanager
def guarded(run: Run, frame: Frame, node: ast.AST, condition: ast.expr, test: Value) -> Iterator[None]:
    """What runs inside does so only where a condition that is not known holds."""
    data = asks(test) or (isinstance(test, Sym) and test.tensor is not None)
    mark = len(run.guards)
    run.guards.append(Guard(run.place(frame, node), periodic(condition) or not data, data))
    try:
        yield
    finally:
        del run.guards[mark:]


def periodic(test: ast.expr) -> bool:
    """`step % 100 == 0` and its like: not taken on every pass."""
    known: bool | None = getattr(test, "_gradguard_periodic", None)
    if known is None:
        known = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in walk(test))
        test._gradguard_periodic = known  # type: ignore[attr-defined]
    return known


def skips_most(node: ast.If) -> bool:
    """`if step % 100: continue` and its like: what follows runs on few passes."""
    if node.orelse or not isinstance(node.body[-1], ast.Continue):
        return False
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.NotEq, ast.Gt)):
        test = test.left
    return isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod)


def _plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _tuple(run: Run, frame: Frame, node: ast.Tuple) -> Value:
    if literals.parts(node):
        return literals.value(run, frame.namespace.path, node)
    items, is_open = _elements(run, frame, node.elts)
    return TupleV(tuple(items), open=is_open)


def _list(run: Run, frame: Frame, node: ast.List) -> Value:
    if literals.parts(node):
        return literals.value(run, frame.namespace.path, node)
    items, is_open = _elements(run, frame, node.elts)
    return ListV(items, open=is_open, made=run.place(frame, node))


def _set(run: Run, frame: Frame, node: ast.Set) -> Value:
    if literals.parts(node):
        return literals.value(run, frame.namespace.path, node)
    items, is_open = _elements(run, frame, node.elts)
    return ListV(items, open=is_open, made=run.place(frame, node), kind="set")


def _elements(run: Run, frame: Frame, nodes: list[ast.expr]) -> tuple[list[Value], bool]:
    items: list[Value] = []
    is_open = False
    mark = run.pend(items)
    for element in nodes:
        if isinstance(element, ast.Starred):
            value = evaluate(run, frame, element.value)
            source = iterate(run, frame, value, element)
            items.extend(islice(source.source, bounds.MAX_ITEMS + 1))
            is_open = bounds.cut(run, items) or is_open or not source.exact
        else:
            items.append(evaluate(run, frame, element))
    del run.pending[mark:]
    return items, is_open


def _dict(run: Run, frame: Frame, node: ast.Dict) -> Value:
    if literals.parts(node):
        return literals.value(run, frame.namespace.path, node)
    made = DictV(made=run.place(frame, node))
    mark = run.pend([made])
    for key, value in zip(node.keys, node.values):
        held = evaluate(run, frame, value)
        if key is None:
            if isinstance(held, DictV):
                made.items.update(held.items)
                made.open = bounds.cut_table(run, made.items) or made.open or held.open
            else:
                made.open = True
            continue
        subscripts.dict_set(made, evaluate(run, frame, key), held)
    del run.pending[mark:]
    return made


def _lambda(run: Run, frame: Frame, node: ast.Lambda) -> Value:
    return make_function(run, frame, node, "<lambda>")


def _call(run: Run, frame: Frame, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return attributes.super_of(frame)
    callee = evaluate(run, frame, node.func)
    mark = run.pend([callee] if isinstance(callee, BuiltinMethod) else [])
    arguments = arguments_of(run, frame, node)
    del run.pending[mark:]
    return call_value(run, frame, callee, arguments, node)


def arguments_of(run: Run, frame: Frame, node: ast.Call) -> Call:
    """Evaluate a call's arguments, with `*` and `**` unpacked where they are known."""
    args: list[Value] = []
    exprs: list[ast.AST | None] = []
    call = Call(args, {}, run.place(frame, node), exprs, {})
    mark = run.pend(args)
    for argument in node.args:
        kind = type(argument)
        if kind is ast.Starred:
            source = iterate(run, frame, evaluate(run, frame, argument.value), argument)  # type: ignore[attr-defined]
            args.extend(islice(source.source, bounds.MAX_ITEMS + 1))
            call.open_args = bounds.cut(run, args) or call.open_args or not source.exact
            exprs += [argument] * (len(args) - len(exprs))
        else:
            if kind is ast.GeneratorExp:  # mostly used up by the call
                args.append(comprehensions.gathered(run, frame, argument))  # type: ignore[arg-type]
            else:
                args.append(evaluate(run, frame, argument))
            exprs.append(argument)
    if node.keywords:
        _named_arguments(run, frame, node.keywords, call)
    del run.pending[mark:]
    return call


def _named_arguments(run: Run, frame: Frame, keywords: list[ast.keyword], call: Call) -> None:
    named: list[Value] = []
    run.pend(named)
    for keyword in keywords:
        value = evaluate(run, frame, keyword.value)
        named.append(value)
        if keyword.arg is not None:
            call.kwargs[keyword.arg] = value
            call.kwexprs[keyword.arg] = keyword.value
        elif isinstance(value := contents(value), DictV):
            run.work(len(value.items))
            for key, item in value.items.values():
                if isinstance(key, str):
                    call.kwargs[key] = item
            call.open_args = call.open_args or value.open
        else:
            call.open_args = True


def _joined(run: Run, frame: Frame, node: ast.JoinedStr) -> Value:
    parts: list[str] | None = []
    length = 0
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(run, frame, part.value)
            holders.shown(run, (value,))
            if part.format_spec is not None:
                evaluate(run, frame, part.format_spec)
            if isinstance(value, Tensor):
                reads.host_read(run, frame, part.value, "format", value, implicit=True)
            if (
                parts is not None
                and isinstance(value, (str, int))
                and part.format_spec is None
                and part.conversion == -1
            ):
                parts.append(str(value))
            else:
                parts = None
        elif parts is not None and isinstance(part, ast.Constant):
            parts.append(str(part.value))
        if parts:
            length += len(parts[-1])
            parts = parts if length <= bounds.MAX_TEXT else None
    if parts is None:
        return run.fresh("str")
    run.work(length // bounds.CHARACTERS_A_UNIT)
    return "".join(parts)


def _starred(run: Run, frame: Frame, node: ast.Starred) -> Value:
    return evaluate(run, frame, node.value)


def _named(run: Run, frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(run, frame, node.value)
    while frame.clause and frame.parent is not None:
        frame = frame.parent
    assign_name(run, frame, node.target.id, value, node)
    return value


def _await(run: Run, frame: Frame, node: ast.Await) -> Value:
    return evaluate(run, frame, node.value)


def _yield(run: Run, frame: Frame, node: ast.Yield | ast.YieldFrom) -> Value:
    # Statements handle a `yield` they consist of; one nested in an expression gets an unknown value sent.
    if node.value is not None:
        evaluate(run, frame, node.value)
    return run.fresh()


_HANDLERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binop,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolop,
    ast.IfExp: _ifexp,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Lambda: _lambda,
    ast.Call: _call,
    ast.ListComp: comprehensions.gathered,
    ast.SetComp: comprehensions.gathered,
    ast.GeneratorExp: comprehensions.generator,
    ast.DictComp: comprehensions.table,
    ast.JoinedStr: _joined,
    ast.Starred: _starred,
    ast.NamedExpr: _named,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
}
