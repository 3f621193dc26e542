"""Calls into code that is not read: unknown functions, unknown objects, NumPy arrays, strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator
from itertools import islice

from gradguard.engine.autograd.backward import backward
from gradguard.engine.dispatch import graphless, torchcalls
from gradguard.engine.dispatch.binding import choose
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.classes import kind_of
from gradguard.engine.domain.conditions import key_of, known_truth
from gradguard.engine.domain.keys import HOST, Key
from gradguard.engine.domain.relevance import TENSOR_ONLY
from gradguard.engine.domain.tensors import NO_CUTS, Tensor
from gradguard.engine.domain.values import (
    ArrayV,
    BuiltinMethod,
    ContextV,
    Frame,
    FunctionV,
    Instance,
    IteratorV,
    ListV,
    Sym,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.models import opaque
from gradguard.engine.models import tensor_methods as tensors
from gradguard.engine.observe import copies, graphs, holders, reads
from gradguard.engine.observe.lending import TELLING, lend
from gradguard.engine.python import contexts
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.iteration import MAX_RANGE
from gradguard.engine.state import bounds
from gradguard.engine.state.coerce import as_tensor, on_host
from gradguard.engine.state.run import Run
from gradguard.ops.model import Kind


def unknown_call(run: Run, frame: Frame, path: str, call: Call, node: ast.AST) -> Value:
    """A function of a library that is not read.

    It may keep, write or differentiate what it is given; none of that is assumed.
    """
    if path.startswith(("numpy.", "np.")):
        for value in call.args:
            for tensor in tensors_in(value):
                reads.to_numpy(run, frame, node, tensor, implicit=True)
                tensor.memory.held = True  # `numpy.atleast_1d` and its like give views
        return ArrayV(cuts=NO_CUTS.union(*(graphs.cuts_in(run, value) for value in call.args)))
    if path.endswith((".backward", ".manual_backward")):
        return differentiate(run, call, node)
    escaped(run, call, node)
    return Sym(("call", path, run.tick()), text=path.rpartition(".")[2])


def escaped(run: Run, call: Call, node: ast.AST) -> None:
    """What is given to unknown code may be shared with it."""
    values, told = (*call.args, *call.kwargs.values()), _named(call, node) in TELLING
    lend(run, values, told=told or _measures(node))
    if told:
        holders.shown(run, values)
        return
    if run.marks.network_lent:
        run.lasts(call.place)
    if any(isinstance(value, Instance) and kind_of(value) == "Module" for value in values):
        run.marks.network_lent = True


_MEASURES = re.compile(r"metric|accuracy|(^|[._])(acc|meter|score|auroc|f1|iou|psnr|ssim)s?($|[._])")


def _measures(node: ast.AST) -> bool:
    """Whether a call is named for a measure, which differentiates nothing."""
    if not isinstance(node, ast.Call):
        return False
    # Remembered on the tree itself, which lives as long as the answer does.
    known: bool | None = getattr(node, "_gradguard_measures", None)
    if known is None:
        known = _MEASURES.search(ast.unparse(node.func).lower()) is not None
        node._gradguard_measures = known  # type: ignore[attr-defined]
    return known


def _named(call: Call, node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", call.name)


def differentiate(run: Run, call: Call, node: ast.AST) -> Value:
    """`accelerator.backward(loss)`, `self.manual_backward(loss)`, `fabric.backward(loss)`."""
    loss = call.get(0, "loss")
    if isinstance(loss, Sym):
        loss = as_tensor(run, loss)
    if isinstance(loss, Tensor):
        tensors.give_history(run, loss)
        retain = call.kwargs.get("retain_graph")
        backward(run, [loss], call.place, retain=False if retain is None else known_truth(retain))
    return None


def call_sym(run: Run, frame: Frame, callee: Value, call: Call, node: ast.AST) -> Value:
    """Call an unknown value: a method of an unknown object, an unknown function, or a network."""
    if isinstance(callee, Sym):
        if callee.owner is not None:
            return unknown_object_method(run, frame, callee.owner, callee.name, call, node)
        # No tensor can be called.
        callee.called = True
        if callee.kind == "module" or _looks_called_as_network(callee, call):
            return _network(run, callee, call, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and call.args:
        if node.func.attr in ("backward", "manual_backward"):
            # Whatever it is a method of, as an engine that is None until the program has set it.
            return differentiate(run, call, node)
    escaped(run, call, node)
    return Sym((HOST if _prepares(getattr(node, "func", None), call) else "call", run.tick()))


_PREPARES = re.compile(r"_?(text_)?(tokenizer|processor|image_processor|feature_extractor)(_?\d|_one|_two)?")
"""Names of what makes tensors of text, images and sound."""


def _prepares(named: ast.AST | None, call: Call) -> bool:
    """Whether a call, or a method, of what has this name makes tensors of what are none: these lie on the CPU."""
    name = named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""
    return (
        _PREPARES.fullmatch(name) is not None
        and "device" not in call.kwargs
        and not any(tensors_in(value) for value in (*call.args, *call.kwargs.values()))
    )


def _looks_called_as_network(callee: Sym, call: Call) -> bool:
    return (
        "parameters" in callee.attributes
        or "train" in callee.attributes
        or "eval" in callee.attributes
        or "zero_grad" in callee.attributes
    )


def _network(run: Run, callee: Sym, call: Call, node: ast.AST) -> Value:

    callee.kind = "module"
    return opaque.opaque(run, [*call.args, *call.kwargs.values()], call.place, None, node)


def _as_of_tensors(run: Run, owner: Sym, name: str, call: Call) -> bool:
    """Whether the arguments are such as the method of tensors takes.

    `accelerator.gather(loss)` is another one. So is `self.norm(x)` of what holds a layer of that name: torch would
    take a tensor for a number, which no caller means who gives it one as the only hint of what the owner is. No layer
    is named `new_full`, so that one is the method of tensors whatever stands for its numbers.
    """
    if owner.called:
        return False
    op = run.table.op(f"Tensor.{name}")
    exprs: list[ast.AST | None] = [None, *call.exprs]
    given = Call([owner, *call.args], call.kwargs, call.place, exprs, call.kwexprs, open_args=call.open_args)
    if op is None:
        return True
    chosen = choose(run, op, given)
    if chosen is None:
        return False
    form, bound = chosen
    return name.startswith("new_") or not any(
        param.kind in _NUMBERS and isinstance(bound.values.get(param.name), Tensor) for param in form.params
    )


_NUMBERS = frozenset({Kind.NUMBER, Kind.FLOAT, Kind.INT, Kind.INTS, Kind.BOOL})


_NUMBER_KINDS = ("number", "int", "index", "bool")


HANDING_BACK = frozenset({"prepare", "prepare_model", "setup", "setup_module", "setup_optimizers"})
"""Methods by which an object that is not read, such as an `accelerator` that a function is given, hands back modules and
optimizers as they were."""


def holds_trained(call: Call) -> bool:
    """Whether a module or an optimizer is among the arguments."""
    return any(isinstance(one, Instance) and kind_of(one) in ("Module", "Optimizer") for one in call.args)


def given_back(run: Run, call: Call) -> Value:
    """The arguments themselves: one alone, several as a tuple."""
    if call.open_args or not call.args:
        return run.fresh()
    return call.args[0] if len(call.args) == 1 else TupleV(tuple(call.args))


def unknown_object_method(run: Run, frame: Frame, owner: Sym, name: str, call: Call, node: ast.AST) -> Value:
    """A method of an unknown object."""
    if name in ("backward", "manual_backward") and call.args:
        return differentiate(run, call, node)
    if name in HANDING_BACK and holds_trained(call):
        return given_back(run, call)
    if name == "zero_grad":
        run.marks.cleared = True
    if name in TENSOR_ONLY and owner.kind in ("any", "tensor") and _as_of_tensors(run, owner, name, call):
        return run.models.method(run, frame, as_tensor(run, owner), name, call, node)
    if name == "parameters" or name == "named_parameters":
        owner.kind = "module"
        if owner.parameters is None:
            made = run.tensor(call.place)
            made.parameter, made.requires_grad, made.sure = True, None, False
            made.bound_name = "parameter"
            owner.parameters = [made]
        items = owner.parameters
        if name == "named_parameters":
            return ListV([TupleV((run.fresh("str"), p)) for p in items], open=True, kind="parameters")
        return ListV(list(items), open=True, kind="parameters")
    if name == "eval" and not call.args:
        run.marks.evaluates = True
    if name in ("eval", "train", "cuda", "half", "requires_grad_", "to", "float") and owner.kind == "module":
        return owner
    if name in ("to", "cuda", "cpu", "float", "half", "long", "double") and owner.kind == "any":
        # A batch or a module moved somewhere: what it is stays open, but it is what it was.
        if name in ("to", "cuda"):
            copies.batch_moved(run, call, owner, "cuda" if name == "cuda" else call.get(0, "device"))
        return _moved(run, owner, name, call)
    # What stood where only a number can stand has these methods too: it is one of NumPy's.
    described = owner.name in ("dtype", "device", "shape") or owner.kind in _NUMBER_KINDS
    if name in ("item", "tolist", "numpy", "is_floating_point") and not call.args and not described:
        return run.models.method(run, frame, as_tensor(run, owner), name, call, node)
    escaped(run, call, node)
    func = getattr(node, "func", None)
    if isinstance(func, ast.Attribute) and not name.startswith("post") and _prepares(func.value, call):
        return Sym((HOST, run.tick()))
    result = Sym(
        Key(owner.key, "method", name, *map(key_of, call.args), run.tick() if not owner.data else 0),
        data=owner.data,
    )
    return graphless.mark(result, graphless.by_method(run, owner, name, call))


def _moved(run: Run, owner: Sym, name: str, call: Call) -> Value:
    free = graphless.by_method(run, owner, name, call)
    if on_host(owner) and name in ("to", "cuda"):
        # What holds several tensors moves all of them, and itself.
        owner.key = Key("moved", owner.key)
        owner.forget()
    made = Sym(Key(owner.key, name, *map(key_of, call.args)), data=owner.data, text=owner.text)
    return graphless.mark(made, free)


def unknown_method(run: Run, frame: Frame, receiver: Instance, name: str, call: Call, node: ast.AST) -> Value:
    """A method that a torch class has but no model describes."""
    path = getattr(receiver.cls, "path", "")
    if path.startswith("torch.distributions"):
        given = tensors_in(call.get(0, "value"))
        if given and name in _VALIDATED and receiver.attributes.get("__validates__"):
            reads.host_read(run, frame, node, name, given[0], implicit=True, checks=True)
        return _sampled(run, receiver, name, call)
    escaped(run, call, node)
    return run.fresh()


_VALIDATED = frozenset({"log_prob", "cdf"})
"""Methods that check the values they are given, unless `validate_args=False`."""
_COMPUTED = frozenset(
    {"mean", "stddev", "variance", "scale", "loc", "probs", "logits", "mode", "rate", "concentration"}
)


def distribution_attribute(run: Run, owner: Instance, name: str) -> Value:
    """A method, or a tensor computed from the distribution's parameters."""
    if name not in _COMPUTED:
        return BuiltinMethod(owner, name)
    return _sampled(run, owner, name, Call([], {}, owner.made or run.here(), [], {}))


def _sampled(run: Run, receiver: Instance, name: str, call: Call) -> Value:
    """`rsample`, `log_prob`, `entropy` carry the graph of the distribution's parameters; `sample` does not."""
    inputs = list(tensors_in(receiver.attributes.get("__parameters__")))
    inputs += [t for value in call.args for t in tensors_in(value)]
    if name in ("sample", "sample_n"):
        made = run.tensor(call.place)
        made.sure = True
        return made
    made_call = Call(list(inputs), {}, call.place, [None] * len(inputs), {})
    return torchcalls.unknown_op(run, made_call, name)


def value_method(run: Run, frame: Frame, receiver: Value, name: str, call: Call, node: ast.AST) -> Value:
    """A method of a string, number, function or unknown value."""
    if isinstance(receiver, Sym):
        return unknown_object_method(run, frame, receiver, name, call, node)
    if isinstance(receiver, str):
        return _string(run, frame, receiver, name, call, node)
    if isinstance(receiver, FunctionV) and name == "__call__":
        return call_value(run, frame, receiver, call, node)
    if isinstance(receiver, ContextV) and name in ("__enter__", "__exit__"):
        return contexts.by_hand(run, frame, receiver, name, node)
    if isinstance(receiver, IteratorV) and name == "send" and isinstance(receiver.source, Generator):
        try:
            sent: Value = receiver.source.send(call.get(0, "value"))
            return sent
        except (StopIteration, TypeError):
            # It ended, or was sent something before its first `yield`.
            return run.fresh()
    if isinstance(receiver, IteratorV) and name == "__next__":
        return next(receiver.source, run.fresh(data=receiver.data))
    escaped(run, call, node)
    return run.fresh()


def _string(run: Run, frame: Frame, receiver: str, name: str, call: Call, node: ast.AST) -> Value:
    if name == "format":
        holders.shown(run, (*call.args, *call.kwargs.values()))
        for value in (*call.args, *call.kwargs.values()):
            for tensor in tensors_in(value):
                reads.host_read(run, frame, node, "format", tensor, implicit=True)
        return run.fresh("str")
    texts = call.get(0, "iterable") if name == "join" else None
    if isinstance(texts, IteratorV):
        for _ in islice(texts.source, MAX_RANGE):
            pass  # what makes the texts runs now
    if name in ("startswith", "endswith") and call.args and isinstance(call.args[0], str):
        return receiver.startswith(call.args[0]) if name == "startswith" else receiver.endswith(call.args[0])
    if name in ("lower", "upper", "strip") and not call.args:
        return bounds.computed(run, getattr(str, name), receiver, kind="str")
    if name == "split" and all(isinstance(a, str) for a in call.args):
        separator = call.get(0, "sep")
        if separator == "" or len(call.args) > 1:
            return run.fresh()
        parts: list[Value] = [*receiver.split(separator if isinstance(separator, str) else None)]
        return ListV(parts)
    return run.fresh("str")


def array_method(run: Run, frame: Frame, receiver: ArrayV, name: str, call: Call, node: ast.AST) -> Value:
    """A method of a NumPy array; most return a new one."""
    if name in ("reshape", "view", "ravel", "squeeze", "transpose", "swapaxes"):
        return ArrayV(receiver.memory_of, receiver.dtype, receiver.cuts)
    cuts = graphs.cuts_in(run, receiver)
    if name == "astype":
        return ArrayV(cuts=cuts)
    if name in ("fill", "sort", "put", "itemset", "partition", "resize"):
        torchcalls.array_write(run, frame, receiver, node, name)
        return None
    if name in ("item", "tolist", "mean", "sum", "max", "min"):
        made = run.fresh("number", data=True)
        made.cuts = cuts
        return made
    return ArrayV(cuts=cuts)
