"""Calling things: workspace functions, classes, modules, and names of torch and other libraries."""

from __future__ import annotations

import ast
from collections.abc import Generator

from gradguard.engine.domain import classes
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.signals import Return, Signal, Steps
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    BuiltinMethod,
    ClassV,
    DictV,
    External,
    Frame,
    FunctionV,
    Instance,
    IteratorV,
    ListV,
    Method,
    NativeV,
    PartialV,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.observe import lifetime
from gradguard.engine.observe.lending import lend
from gradguard.engine.python import enumerations, symbolic
from gradguard.engine.python.contexts import under
from gradguard.engine.state import faults
from gradguard.engine.state.path import PyRaise
from gradguard.engine.state.run import MAX_DEPTH, Run
from gradguard.source.nodes import children

MAX_RECURSION = 3


def call_value(run: Run, frame: Frame, callee: Value, call: Call, node: ast.AST) -> Value:
    """Call any abstract value."""
    if call.args:
        run.weigh(call.args)
    if call.kwargs:
        run.weigh(call.kwargs.values())
    if isinstance(callee, BuiltinMethod):
        return run.models.method(run, frame, callee.receiver, callee.name, call, node)
    if isinstance(callee, Instance):
        return run.models.call_instance(run, frame, callee, call, node)
    if isinstance(callee, FunctionV):
        return call_function(run, frame, callee, call, node)
    if isinstance(callee, Method):
        return _method(run, frame, callee, call, node)
    if isinstance(callee, ClassV):
        return instantiate(run, frame, callee, call, node)
    if isinstance(callee, TorchName):
        return run.models.torch(run, frame, callee.path, call, node)
    if isinstance(callee, External):
        return run.models.external(run, frame, callee.path, call, node)
    if isinstance(callee, PartialV):
        run.work(len(callee.args) + len(callee.kwargs))
        merged = Call(
            [*callee.args, *call.args],
            {**callee.kwargs, **call.kwargs},
            call.place,
            [*(None for _ in callee.args), *call.exprs],
            call.kwexprs,
            open_args=call.open_args,
        )
        return call_value(run, frame, callee.function, merged, node)
    if isinstance(callee, NativeV):
        return callee.call(run, frame, call, node)
    return run.models.call_unknown(run, frame, callee, call, node)


def _method(run: Run, frame: Frame, callee: Method, call: Call, node: ast.AST) -> Value:
    full = Call(
        [callee.receiver, *call.args],
        call.kwargs,
        call.place,
        [None, *call.exprs],
        call.kwexprs,
        open_args=call.open_args,
    )
    receiver = callee.receiver
    stepping = (
        run.step_site is None
        and isinstance(receiver, Instance)
        and isinstance(callee.function, FunctionV)
        and callee.function.name != "__init__"
        and classes.is_subclass(receiver.cls, "torch.optim.Optimizer")
    )
    if not stepping:
        return call_value(run, frame, callee.function, full, node)
    # What an optimizer's own methods write is reported at the call that made them write.
    run.step_site = Place(frame.namespace.path, run.statement or node)
    try:
        return call_value(run, frame, callee.function, full, node)
    finally:
        run.step_site = None


def call_function(run: Run, frame: Frame, function: FunctionV, call: Call, node: ast.AST) -> Value:
    """Interpret a workspace function in its caller's context."""
    if (
        len(run.functions) >= MAX_DEPTH
        or sum(f.node is function.node for f in run.functions) >= MAX_RECURSION
    ):
        lend(run, (function, *call.args, *call.kwargs.values()))
        return run.fresh()
    inner = Frame(function.namespace, {}, parent=function.scope, function=function, owner=function.owner)
    inner.site = run.place(frame, node)
    bind_arguments(run, function, call, inner)
    arguments = function.node.args
    first = (arguments.posonlyargs or arguments.args)[:1]
    if function.owner is not None and first:
        inner.receiver = inner.variables.get(first[0].arg)
    if function.namespace.path == run.home:
        run.entered.add(function.node)
    if isinstance(function.node, ast.Lambda):
        return _body(run, inner, function, node)
    if _is_generator(function.node):
        source = _generate(run, inner, function)
        if function.kind == "contextmanager":
            return IteratorV(source, exact=True, kind="contextmanager", frame=inner)
        return IteratorV(source, exact=True, frame=inner)
    if function.kept is not False:
        return _remembered(run, inner, function, call, node)
    return _body(run, inner, function, node)


def _remembered(run: Run, inner: Frame, function: FunctionV, call: Call, node: ast.AST) -> Value:
    """Run a function only where its cache has nothing for these arguments; arguments that are not plain stand for many."""
    given = (*call.args, *call.kwargs.values())
    plain = function.kept is True and not call.open_args
    plain = plain and all(value is None or type(value) in _PLAIN for value in given)
    key = (function, tuple(call.args), tuple(call.kwargs.items())) if plain else None
    if key is not None and key in run.remembered:
        return run.remembered[key]
    made = _body(run, inner, function, node)
    for tensor in tensors_in(made):
        tensor.memory.held = True
        if tensor.node is not None:
            run.lasts(call.place)
    if key is not None:
        run.remembered[key] = made
    return made


_PLAIN = (bool, int, float, str)


def _body(run: Run, inner: Frame, function: FunctionV, node: ast.AST) -> Value:

    saved_modes, saved_statement, elsewhere = run.modes, run.statement, run.oracle.elsewhere
    leaning, run.oracle.leaning = run.oracle.leaning, True
    if run.library is None and not run.functions and function.namespace.path != run.home:
        run.oracle.elsewhere = True
    run.modes = _modes(run, function)
    run.functions.append(function)
    run.calls.append(inner.site or Place(inner.namespace.path, node))
    run.frames.append(inner)
    run.compiled += function.compiled
    mark = run.trail.mark(run)
    try:
        if isinstance(function.node, ast.Lambda):
            # What it does is told at its expression, which is part of no statement that runs.
            run.statement = None
            return run.python.evaluate(run, inner, function.node.body)
        signal = _drive(run.python.execute(run, inner, function.node.body))
        result = signal.value if isinstance(signal, Return) else None
        if run.kept and result is not None:
            lifetime.returned(run, inner, function, result)
        run.trail.returned(run, inner, function.node, mark, result)
        return result
    except Exception as error:
        faults.passes(run, function.node, error)
        raise
    finally:
        run.compiled -= function.compiled
        run.frames.pop()
        run.calls.pop()
        run.functions.pop()
        _restore_modes(run, function, saved_modes)
        run.statement, run.oracle.elsewhere = saved_statement, elsewhere
        run.oracle.leaning = leaning


def _restore_modes(run: Run, function: FunctionV, saved: Modes) -> None:
    if not function.modes and run.modes.grad is not saved.grad:
        lasting, run.marks.set_grad = run.marks.set_grad, None
        if lasting is run.modes:
            # `torch.set_grad_enabled(False)` as a statement outlives the function that said it.
            return
    run.modes = saved


def _modes(run: Run, function: FunctionV) -> Modes:
    modes = run.modes
    for mode in reversed(function.modes):
        modes = under(modes, *mode, Place(function.namespace.path, function.node))
    return modes


def _drive(steps: Steps) -> Signal:
    """Run a block to its end and discard the values that it yields."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            signal: Signal = stop.value
            return signal


def _generate(run: Run, inner: Frame, function: FunctionV) -> Generator[Value, Value, None]:
    """Items of a generator function, each computed when asked for; takes what its caller sends."""
    assert not isinstance(function.node, ast.Lambda)
    modes = _modes(run, function)
    steps = run.python.execute(run, inner, function.node.body)
    sent: Value = None
    for _ in range(MAX_YIELDS):
        saved, run.modes = run.modes, modes if function.modes else run.modes
        run.frames.append(inner)
        run.functions.append(function)
        run.calls.append(inner.site or Place(inner.namespace.path, function.node))
        asked = run.oracle.clock
        try:
            item = steps.send(sent)
        except StopIteration:
            return
        except Exception as error:
            faults.passes(run, function.node, error)
            raise
        finally:
            if asked != run.oracle.clock:
                run.trail.partial.append(False)
            run.calls.pop()
            run.functions.pop()
            run.frames.pop()
            if function.modes:
                modes, run.modes = run.modes, saved
        run.suspended.append(inner)
        sent = yield item
        run.suspended.remove(inner)


MAX_YIELDS = 64


def _is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    # Remembered on the tree itself, which lives as long as the answer does.
    known: bool | None = getattr(node, "_gradguard_generator", None)
    if known is None:
        known = any(_yields(statement) for statement in node.body)
        node._gradguard_generator = known  # type: ignore[union-attr]
    return known


def _yields(node: ast.AST) -> bool:
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        return False
    return any(map(_yields, children(node)))


def bind_arguments(run: Run, function: FunctionV, call: Call, inner: Frame) -> None:
    """Fill a function's parameters; what is missing is unknown."""
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    variables = inner.variables
    for index, parameter in enumerate(positional):
        name = parameter.arg
        if index < len(call.args):
            variables[name] = call.args[index]
        elif name in call.kwargs:
            variables[name] = call.kwargs[name]
        elif name in function.defaults and not call.open_args:
            variables[name] = function.defaults[name]
        else:
            variables[name] = run.fresh(text=name)
    names = {parameter.arg for parameter in positional}
    if arguments.vararg is not None:
        run.work(len(call.args))
        variables[arguments.vararg.arg] = TupleV(tuple(call.args[len(positional) :]), open=call.open_args)
    for parameter in arguments.kwonlyargs:
        name = parameter.arg
        names.add(name)
        if name in call.kwargs:
            variables[name] = call.kwargs[name]
        elif name in function.defaults and not call.open_args:
            variables[name] = function.defaults[name]
        else:
            variables[name] = run.fresh(text=name)
    if arguments.kwarg is not None:
        extra: dict[object, tuple[Value, Value]] = {
            key: (key, value) for key, value in call.kwargs.items() if key not in names
        }
        run.work(len(extra))
        variables[arguments.kwarg.arg] = DictV(extra, open=call.open_args)
    for parameter in (*positional, *arguments.kwonlyargs):
        if parameter.annotation is not None:
            variables[parameter.arg] = symbolic.declared(variables[parameter.arg], parameter.annotation)
    inner.given = tuple(variables.values())
    for name, value in variables.items():
        if isinstance(value, Tensor) and not value.bound_name:
            value.bound_name = name


def instantiate(
    run: Run, frame: Frame, cls: ClassV, call: Call, node: ast.AST, made: Instance | None = None
) -> Value:
    """Make an object of a workspace class and run its `__init__`, on `made` where that is given."""
    if enumerations.is_enumeration(cls):
        run.work(len(cls.attributes))
        member = enumerations.by_value(cls, call.get(0, "value"))
        return member if member is not None else run.fresh()
    made = made if made is not None else Instance(cls, made=run.place(frame, node))
    if classes.is_subclass(cls, "torch.autograd.Function"):
        return made
    holds = classes.holds(cls)
    if holds and "__children__" not in made.attributes:
        place = run.place(frame, node)
        made.attributes["__children__"] = DictV(made=place) if holds == "dict" else ListV(made=place)
    if classes.is_subclass(cls, "builtins.Exception") or cls.name.endswith(("Error", "Exception")):
        made.attributes["args"] = TupleV(tuple(call.args))
        return made
    if classes.is_named_tuple(cls):
        names = tuple(name for name, _ in cls.fields)
        items = [call.get(index, name, default) for index, (name, default) in enumerate(cls.fields)]
        return TupleV(tuple(items), names=names)
    ends = classes.class_lookup(cls, "__del__")
    if ends is not None:
        lend(run, (classes.bind(made, ends),))  # nobody says when it runs
    init = classes.class_lookup(cls, "__init__")
    if init is not None:
        call_value(run, frame, classes.bind(made, init), call, node)
    elif cls.dataclass:
        _fill_fields(run, frame, cls, made, call, node)
    else:
        run.models.init_base(run, frame, made, call, node)
    return made


def _fill_fields(run: Run, frame: Frame, cls: ClassV, made: Instance, call: Call, node: ast.AST) -> None:
    for index, (name, default) in enumerate(classes.all_fields(cls)):
        value = call.args[index] if index < len(call.args) else call.kwargs.get(name, default)
        if isinstance(value, NativeV) and value.name == "field":
            value = value.call(run, frame, call, node)
        made.attributes[name] = value
    after = classes.class_lookup(cls, "__post_init__")
    if after is not None:
        call_value(run, frame, classes.bind(made, after), Call([], {}, call.place, [], {}), node)


def raised(value: Value) -> PyRaise:
    """The exception that `raise value` raises."""
    name = (
        value.cls.name
        if isinstance(value, Instance) and isinstance(value.cls, ClassV)
        else getattr(value, "path", "")
    )
    return PyRaise(value, name.rpartition(".")[2])
