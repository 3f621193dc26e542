"""The parts of the standard library and of other common packages that carry tensors around."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradguard.engine.autograd import layout, machine
from gradguard.engine.dispatch.results import MADE
from gradguard.engine.domain import classes, spelling
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.conditions import key_of
from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.tensors import Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    ClassV,
    ContextV,
    DictV,
    External,
    Frame,
    FunctionV,
    Instance,
    ListV,
    NativeV,
    PartialV,
    Sym,
    TorchName,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models.builtins import held, range_, take
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import graphs, reads
from gradguard.engine.python.calls import call_value, instantiate
from gradguard.engine.python.contexts import ENTERED, enter, leave
from gradguard.engine.python.iteration import iterate
from gradguard.engine.state import bounds
from gradguard.engine.state.path import PathEnd
from gradguard.engine.state.run import Run

MODELS = Registry()


@MODELS.external_function("sys.exit", "builtins.exit", "builtins.quit", "os._exit")
def _exit(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    raise PathEnd


@MODELS.external_function("functools.partial")
def _partial(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return PartialV(call.args[0], tuple(call.args[1:]), dict(call.kwargs)) if call.args else run.fresh()


@MODELS.external_function("functools.reduce")
def _reduce(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

    if len(call.args) < 2:
        return run.fresh()
    items = list(take(iterate(run, frame, call.args[1], node)))
    if len(call.args) > 2:
        items.insert(0, call.args[2])
    if not items:
        return run.fresh()
    total = items[0]
    for item in items[1:]:
        total = call_value(
            run, frame, call.args[0], Call([total, item], {}, call.place, [None, None], {}), node
        )
    return total


@MODELS.external_function(
    "functools.wraps",
    "functools.lru_cache",
    "functools.cache",
    "functools.total_ordering",
)
def _identity_decorator(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    if call.args and isinstance(call.args[0], FunctionV) and call.name.endswith("cache"):
        return _kept(run, frame, call, node)
    if not call.name.endswith("cache"):
        return NativeV(lambda run, frame, call, node: call.get(0, "f"), "identity")
    most = call.get(0, "maxsize", MANY_KEPT)
    many = most is None or (type(most) is int and most >= MANY_KEPT)
    return NativeV(_kept if many and call.get(1, "typed", False) is False else _kept_for_a_while, "identity")


@MODELS.external_function("builtins.property")
def _property(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`x = property(get_x, set_x)`; the functions themselves stay what they are."""
    getter = call.get(0, "fget")
    if not isinstance(getter, FunctionV):
        return run.fresh()
    setter = call.get(1, "fset")
    return replace(getter, kind="property", setter=setter if isinstance(setter, FunctionV) else None)


@MODELS.external_function("builtins.object.__setattr__", "builtins.super.__setattr__")
def _bound_directly(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`object.__setattr__(self, name, value)` asks no `__setattr__` of the program."""
    owner, name = call.get(0, "self"), call.get(1, "name")
    if isinstance(owner, Instance) and isinstance(name, str):
        owner.attributes[name] = call.get(2, "value")
    return None


MANY_KEPT = 128
"""Results that `lru_cache` keeps unless told otherwise: more than a path asks for."""


def _kept(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    function = call.get(0, "f")
    if isinstance(function, FunctionV):
        function.kept = True
    return function


def _kept_for_a_while(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    function = call.get(0, "f")
    if isinstance(function, FunctionV):
        function.kept = None
    return function


@MODELS.external_function("copy.copy", "copy.deepcopy")
def _copy(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    deep = call.name.endswith("deepcopy")
    return _copied(run, held(call.get(0, "x")), call, {}, deep)


MAX_COPIED_DEPTH = 64
"""Nesting down to which a value is copied."""


def _copied(run: Run, value: Value, call: Call, done: dict[int, Value], deep: bool, depth: int = 0) -> Value:
    known = done.get(id(value))
    if known is not None:
        return known
    if depth > MAX_COPIED_DEPTH:
        run.limits[bounds.NESTED] = None
        return run.fresh()

    def copied(part: Value) -> Value:
        return _copied(run, part, call, done, deep, depth + 1) if deep else part

    if isinstance(value, Tensor):
        run.work(MADE)
        if not deep:
            # Another tensor over the same memory, made anew from what is stored.
            other = machine.share(run, value, call.place, "copy", counter=False)
            other.inference, other.own_counter = run.modes.inference, False
            other.parameter, other.requires_grad, other.leaf = value.parameter, value.requires_grad, True
            return other
        made = run.tensor(call.place)
        made.dtype, made.device = value.dtype, value.device
        layout.fresh(made, value.shape, [])
        made.parameter, made.requires_grad, made.leaf = value.parameter, value.requires_grad, True
        made.bound_name, made.source = value.bound_name, value.source
        done[id(value)] = made
        return made
    if isinstance(value, Instance):
        twin = Instance(value.cls, made=call.place, training=value.training, compiled=value.compiled)
        twin.stored = set(value.stored)
        done[id(value)] = twin
        twin.attributes = {k: copied(v) for k, v in value.attributes.items()}
        return twin
    if isinstance(value, ListV):
        listed = done[id(value)] = ListV([], value.open, call.place, value.kind)
        listed.items += map(copied, value.items)
        return listed
    if isinstance(value, TupleV):
        done[id(value)] = TupleV(tuple(map(copied, value.items)), value.names, value.open)
        return done[id(value)]
    if isinstance(value, DictV):
        table = done[id(value)] = DictV({}, open=value.open, made=call.place, factory=value.factory)
        table.items.update({k: (key, copied(v)) for k, (key, v) in value.items.items()})
        return table
    return value


@MODELS.external_function("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "tqdm", "rich.progress.track", "alive_progress.alive_it", "accelerate.skip_first_batches")  # fmt: skip
def _through(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """Progress bars give what they are given."""
    if call.name.endswith("trange"):
        return range_(run, frame, call, node)
    return call.get(0, "iterable")


@MODELS.external_function("math.sqrt", "math.exp", "math.log", "math.sin", "math.cos", "math.floor", "math.ceil", "math.isnan", "math.isfinite", "math.isinf", "math.pow", "math.log2", "math.log10", "math.tanh", "math.fabs")  # fmt: skip
def _math(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    import math

    value = held(call.get(0, "x"))
    name = call.name
    if isinstance(value, Tensor):
        reads.host_read(run, frame, node, "float", value, implicit=True)
        made = run.fresh("number", data=True)
        made.cuts = graphs.cut_off(run, (value,), call.place, name, spelling.source_text(node))
        return made
    if all(isinstance(a, (int, float)) for a in call.args) and call.args:
        return bounds.computed(run, getattr(math, name), *call.args, kind="number")
    return Sym(Key("math", name, *map(key_of, call.args)), "number")


@MODELS.external_function("dataclasses.field")
def _field(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    if "default" in call.kwargs:
        return call.kwargs["default"]
    factory = call.kwargs.get("default_factory")

    def make(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

        return call_value(run, frame, factory, Call([], {}, call.place, [], {}), node)

    return NativeV(make, "field")


@MODELS.external_function("dataclasses.replace", "copy.replace")
def _replaced(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A new object of the same class, with the fields of the old one but for those that are named."""
    old = call.get(0, "obj")
    if not isinstance(old, Instance) or not isinstance(old.cls, ClassV) or not old.cls.dataclass:
        return run.fresh()
    fields = {name for name, _ in classes.all_fields(old.cls)}
    given = {name: value for name, value in old.attributes.items() if name in fields} | call.kwargs
    return instantiate(run, frame, old.cls, Call([], given, call.place, [], {}), node)


@MODELS.external_function(
    "asyncio.run", "asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for", "asyncio.shield"
)
def _awaited(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A coroutine runs where it is called, so that who awaits it is given its result."""
    return call.get(0, "main", call.get(0, "coro"))


@MODELS.external_function("asyncio.gather")
def _gathered(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return ListV(list(call.args), open=call.open_args, made=call.place)


@MODELS.external_function("contextlib.suppress", "pytest.raises")
def _expects(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """A block that waits for an error: where it may be torch's, what raises in there is meant to."""
    given = [one for value in call.args for one in (value.items if isinstance(value, TupleV) else (value,))]
    names = {str(getattr(one, "path", "")).rpartition(".")[2] for one in given}
    return ContextV(
        "expects" if names & {"RuntimeError", "Exception", "BaseException"} else "awaits", value=run.fresh()
    )


def _assert_raises(run: Run, frame: Frame, case: Instance, call: Call, node: ast.AST) -> Value:
    return _expects(run, frame, call, node)


MODELS.methods_of("object", {"assertRaises": _assert_raises, "assertRaisesRegex": _assert_raises})


@MODELS.external_function("contextlib.nullcontext")
def _nullcontext(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:

    return ContextV("", value=call.get(0, "enter_result"))


@MODELS.external_function("contextlib.ExitStack", "contextlib.AsyncExitStack")
def _exit_stack(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("contextlib.ExitStack"), {ENTERED: ListV()}, made=call.place)


def _enter_context(run: Run, frame: Frame, stack: Instance, call: Call, node: ast.AST) -> Value:
    manager, held = call.get(0, "cm"), stack.attributes.get(ENTERED)
    if isinstance(held, ListV):
        held.items.append(manager)
    expr, before = call.expr(0), run.modes.grad
    entered = enter(run, frame, manager, expr if isinstance(expr, ast.expr) else ast.Constant(None), node)
    if run.modes.grad is not before:
        run.lasts(call.place)
    return entered


def _close_stack(run: Run, frame: Frame, stack: Instance, call: Call, node: ast.AST) -> Value:
    leave(run, frame, stack, node)
    return None


MODELS.methods_of("ExitStack", {
    "enter_context": _enter_context, "enter_async_context": _enter_context, "close": _close_stack,
})  # fmt: skip


@MODELS.external_function("types.SimpleNamespace", "argparse.Namespace")
def _namespace(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("types.SimpleNamespace"), dict(call.kwargs), made=call.place)


@MODELS.external_function("collections.namedtuple", "typing.NamedTuple")
def _namedtuple(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    fields = call.get(1, "field_names")
    names: list[str] = []
    if isinstance(fields, str):
        names = fields.replace(",", " ").split()
    elif isinstance(fields, (ListV, TupleV)):
        for one in fields.items:
            spelled = one.items[0] if isinstance(one, TupleV) and one.items else one
            if isinstance(spelled, str):
                names.append(spelled)

    return ClassV(
        str(call.get(0, "typename")),
        [External("typing.NamedTuple")],
        {},
        fields=[(n, run.fresh(text=n)) for n in names],
    )


@MODELS.external_function("random.random", "random.uniform", "random.randint", "random.gauss", "random.choice", "random.sample", "time.time", "time.perf_counter", "random.randrange")  # fmt: skip
def _random(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    name = call.name
    if name == "choice" and call.args and isinstance(call.args[0], ListV) and call.args[0].items:
        return call.args[0].items[-1]
    if name == "sample" and call.args and isinstance(call.args[0], ListV):
        return ListV(list(call.args[0].items), open=True)
    return run.fresh("number" if name not in ("choice", "sample") else "any", data=True)


@MODELS.external_function("numpy.array", "numpy.asarray", "numpy.zeros", "numpy.ones", "numpy.random.rand", "numpy.random.randn", "numpy.arange", "numpy.zeros_like", "numpy.empty", "numpy.full")  # fmt: skip
def _numpy(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    source = held(call.get(0, "object"))
    for tensor in tensors_in(source):
        reads.to_numpy(run, frame, node, tensor, implicit=True)
    name = call.name
    if getattr(call.kwargs.get("dtype"), "path", "") == "builtins.object":
        return ListV(open=True, made=call.place)
    if name == "asarray" and isinstance(source, Tensor):
        return ArrayV(source)
    if name == "asarray" and isinstance(source, ArrayV):
        return source
    dtype = getattr(call.kwargs.get("dtype"), "path", "")
    return ArrayV(None, "float32" if dtype.endswith("float32") else "float64" if not dtype else None)
