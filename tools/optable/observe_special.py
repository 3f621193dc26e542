"""What is neither a function of tensors nor a module: optimizers, checkpointing, backward itself, collectives.

Each fact comes from running it, as everywhere; only the forms are named here.
"""

from __future__ import annotations

import inspect
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed
import torch.utils.checkpoint
from torch import optim

from gradguard.ops.model import ALWAYS, NEVER, Condition, Form, Kind, ModuleRow, Op, Param, Saved, Write
from tools.optable.generate_signatures import parameters
from tools.optable.observe_learn import Facts, learn
from tools.optable.observe_real import second_backward_raises, write_breaks_backward

# --- optimizers ----------------------------------------------------------------------------------------------------


def optimizer_classes() -> dict[str, type[optim.Optimizer]]:
    found = {}
    for name in sorted(dir(optim)):
        value = getattr(optim, name)
        if isinstance(value, type) and issubclass(value, optim.Optimizer) and value is not optim.Optimizer:
            found[f"torch.optim.{name}"] = value
    return found


_FLAGS = ("foreach", "fused", "maximize", "amsgrad", "nesterov", "centered")


def optimizer_rows(name: str) -> tuple[ModuleRow, list[Op]]:
    """The class with its constructor, and `step` and `zero_grad` with what they write."""
    cls = optimizer_classes()[name]
    signature = inspect.signature(cls.__init__)
    init = parameters(
        signature.replace(parameters=[p for n, p in signature.parameters.items() if n != "self"])
    )
    flags = [p.name for p in init if p.name in _FLAGS]
    seen: list[tuple[Facts, bool, bool]] = []
    for options in _options(flags):
        written = _step(cls, options)
        if written is not None:
            arguments = {p.name: options.get(p.name, False if p.default == "False" else None) for p in init}
            seen.append((Facts(frozenset(), arguments, {}), *written))
    writes = []
    for counted, pick in ((True, 1), (False, 2)):
        condition = learn([(row[0], row[pick]) for row in seen])  # type: ignore[misc]
        if condition:
            writes.append(Write("params", condition, counted))
    step = Form(
        params=(Param("self", Kind.ANY), Param("closure", Kind.ANY, "None", optional=True)),
        results=(),
        nodes=NEVER,
        writes=tuple(writes),
        source="observed",
    )
    clear = Form(
        params=(Param("self", Kind.ANY), Param("set_to_none", Kind.BOOL, "True")),
        results=(),
        nodes=NEVER,
        writes=_zero_grad_writes(cls),
        source="observed",
    )
    return ModuleRow(name, init=init), [
        Op(f"{name}.step", forms=(step,)),
        Op(f"{name}.zero_grad", forms=(clear,)),
    ]


def _options(flags: list[str]) -> Iterator[dict[str, Any]]:
    yield {}
    for flag in flags:
        for value in (True, False):
            yield {flag: value}
    for one, other in itertools.combinations(flags, 2):
        yield {one: True, other: True}


def _parameters(cls: type[optim.Optimizer]) -> list[torch.Tensor]:
    params = [torch.rand(3, 3, requires_grad=True) for _ in range(2)]
    for p in params:
        p.grad = torch.eye(3).to_sparse() if cls is optim.SparseAdam else torch.rand(3, 3)
    return params


def _build(
    cls: type[optim.Optimizer], params: list[torch.Tensor], options: dict[str, Any]
) -> optim.Optimizer:
    extra = {"momentum": 0.9} if options.get("nesterov") and cls is optim.SGD else {}
    make: Callable[..., optim.Optimizer] = cls
    return make(params, lr=0.1, **options, **extra)


def _step(cls: type[optim.Optimizer], options: dict[str, Any]) -> tuple[bool, bool] | None:
    """Whether `step` wrote parameters seen, and unseen, by the version counter; None when it refuses the options."""
    torch.default_generator.manual_seed(0)
    params = _parameters(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            optimizer: Any = _build(cls, params, options)
            before = [(p._version, p.detach().clone()) for p in params]
            if cls is optim.LBFGS:
                optimizer.step(lambda: torch.stack([(p**2).sum() for p in params]).sum())
            else:
                optimizer.step()
        except (RuntimeError, ValueError, AssertionError):
            return None
    counted = any(p._version != version for p, (version, _) in zip(params, before))
    changed = any(not torch.equal(p, old) for p, (_, old) in zip(params, before))
    return counted, changed and not counted


def _zero_grad_writes(cls: type[optim.Optimizer]) -> tuple[Write, ...]:
    examples = []
    for to_none in (True, False):
        params = _parameters(cls)
        grads = [(p.grad, p.grad._version) for p in params if p.grad is not None]
        _build(cls, params, {}).zero_grad(set_to_none=to_none)
        written = any(g._version != version for g, version in grads)
        examples.append((Facts(frozenset(), {"set_to_none": to_none}, {}), written))
    condition = learn(examples)
    return (Write("params.grad", condition),) if condition else ()


# --- checkpoint and backward ---------------------------------------------------------------------------------------


def checkpoint_op() -> Op:
    """`torch.utils.checkpoint.checkpoint`: keeps its arguments, runs the function again in backward."""
    function = torch.utils.checkpoint.checkpoint
    params = []
    for p in parameters(inspect.signature(function)):
        params.append(Param("args", Kind.TENSORS, variadic=True) if p.name == "args" else p)
    examples: list[tuple[Facts, bool]] = []
    frees: list[tuple[Facts, bool]] = []
    for reentrant in (True, False):
        for grads in (frozenset({"args"}),):
            scene = _checkpoint_scene(reentrant)
            facts = Facts(grads, {"use_reentrant": reentrant}, {})
            examples.append((facts, bool(write_breaks_backward(scene, grads, "args"))))
            frees.append((facts, bool(second_backward_raises(scene, grads))))
    form = Form(
        params=tuple(params),
        differentiable=("args",),
        saves=(Saved("args", learn(examples), "the function is run again on them in backward"),),
        frees=learn(frees),
        source="observed",
    )
    return Op("torch.utils.checkpoint.checkpoint", forms=(form,))


def _checkpoint_scene(
    reentrant: bool,
) -> Callable[[frozenset[str]], tuple[Callable[[], Any], dict[str, Any]]]:
    def set_up(grads: frozenset[str]) -> tuple[Callable[[], Any], dict[str, Any]]:
        x = torch.rand(3, 3).requires_grad_("args" in grads).clone()

        def call() -> Any:
            return torch.utils.checkpoint.checkpoint(lambda v: v.sin(), x, use_reentrant=reentrant)

        return call, {"args": [x]}

    return set_up


def backward_ops() -> list[Op]:
    """`torch.autograd.backward`, `Tensor.backward` and `torch.autograd.grad`."""
    created = _records_when_create_graph()
    ops = []
    for name, function, first in (
        ("torch.autograd.backward", torch.autograd.backward, ""),
        ("Tensor.backward", torch.Tensor.backward, "self"),
        ("torch.autograd.grad", torch.autograd.grad, ""),
    ):
        signature = inspect.signature(function)
        kept = [p for n, p in signature.parameters.items() if n != "self"]
        params = parameters(signature.replace(parameters=kept))
        if first:
            params = (Param(first, Kind.TENSOR), *params)
        gives = name.endswith(".grad")
        ops.append(
            Op(
                name,
                forms=(
                    Form(
                        params=params,
                        results=("result",) if gives else (),
                        list_result=gives,
                        nodes=created,
                        writes=() if gives else _accumulates(),
                        source="observed",
                    ),
                ),
            )
        )
    return ops


def _records_when_create_graph() -> Condition:
    examples = []
    for create in (True, False):
        x = torch.rand(3, requires_grad=True)
        (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=create)
        examples.append((Facts(frozenset(), {"create_graph": create}, {}), gradient.requires_grad))
    return learn(examples)


def _accumulates() -> tuple[Write, ...]:
    """Whether a second backward writes into the gradient that the first left."""
    examples = []
    for create in (True, False):
        x = torch.rand(3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x * 2).sum().backward(create_graph=create)
            before = x.grad
            version = before._version if before is not None else 0
            (x * 2).sum().backward(create_graph=create)
        written = before is not None and x.grad is before and before._version != version
        examples.append((Facts(frozenset(), {"create_graph": create}, {}), written))
    condition = learn(examples)
    return (Write("leaves.grad", condition),) if condition else ()


# --- collectives ---------------------------------------------------------------------------------------------------

_COLLECTIVES: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple[tuple[Any, ...], dict[str, int]]]] = {
    # The arguments, and which of them are tensors by parameter name.
    "all_reduce": lambda a, b: ((a,), {"tensor": 0}),
    "broadcast": lambda a, b: ((a, 1), {"tensor": 0}),
    "reduce": lambda a, b: ((a, 0), {"tensor": 0}),
    "all_gather": lambda a, b: (([a, a.clone()], b), {"tensor_list": 0, "tensor": 1}),
    "all_to_all_single": lambda a, b: ((a, b), {"output": 0, "input": 1}),
    "all_gather_into_tensor": lambda a, b: ((torch.cat([a, a]), b), {"output_tensor": 0, "input_tensor": 1}),
    "reduce_scatter_tensor": lambda a, b: ((a, torch.cat([b, b])), {"output": 0, "input": 1}),
    "scatter": lambda a, b: (
        (a, [b, b] if torch.distributed.get_rank() == 0 else None),
        {"tensor": 0, "scatter_list": 1},
    ),
    "gather": lambda a, b: (
        (b, [a, a.clone()] if torch.distributed.get_rank() == 0 else None),
        {"tensor": 0, "gather_list": 1},
    ),
    "reduce_scatter": lambda a, b: ((a, [b, b.clone()]), {"output": 0, "input_list": 1}),
    "all_to_all": lambda a, b: (
        ([a, a.clone()], [b, b.clone()]),
        {"output_tensor_list": 0, "input_tensor_list": 1},
    ),
    "send": lambda a, b: ((a, 1), {"tensor": 0}),
    "recv": lambda a, b: ((b, 0), {"tensor": 0}),
}


def collective_ops() -> list[Op]:
    """In-place collectives, run between two processes over gloo; the first of them watches."""
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        return []
    reports = _two_processes()
    ops = []
    for name in _COLLECTIVES:
        if not reports.get(name):
            continue
        function = getattr(torch.distributed, name)
        tensors = {r for r, _, _ in reports[name]}
        params = []
        for p in parameters(inspect.signature(function)):
            kind = p.kind
            if p.name in tensors:
                kind = Kind.TENSORS if p.name.endswith("_list") else Kind.TENSOR
            params.append(Param(p.name, kind, p.default, p.keyword_only, p.optional))
        writes = tuple(Write(r, ALWAYS, counted) for r, counted, written in reports[name] if written)
        form = Form(params=tuple(params), results=(), nodes=NEVER, writes=writes, source="observed")
        ops.append(Op(f"torch.distributed.{name}", forms=(form,)))
    return ops


Report = dict[str, list[tuple[str, bool, bool]]]
"""For each collective: role, whether the counter saw the write, whether it was written."""


def _two_processes() -> Report:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        receiving, sending = context.Pipe(duplex=False)
        place = os.path.join(folder, "rendezvous")
        workers = [context.Process(target=_collective_worker, args=(rank, place, sending)) for rank in (0, 1)]
        for worker in workers:
            worker.start()
        merged: Report = {}
        for _ in workers:
            if not receiving.poll(60):
                break
            for name, found in receiving.recv().items():
                merged.setdefault(name, []).extend(found)
        for worker in workers:
            worker.join(10)
            if worker.is_alive():
                worker.kill()
    return {
        name: sorted({r: _strongest(found, r) for r in {f[0] for f in found}}.values())
        for name, found in merged.items()
    }


def _strongest(found: list[tuple[str, bool, bool]], role: str) -> tuple[str, bool, bool]:
    mine = [f for f in found if f[0] == role]
    written = any(w for _, _, w in mine)
    return role, all(counted for _, counted, w in mine if w) if written else False, written


def _collective_worker(rank: int, place: str, sending: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
        report: Report = {}
        for name, arguments in _COLLECTIVES.items():
            a, b = torch.full((4,), float(rank + 1)), torch.full((4,), float(rank + 3))
            called = name
            if (name, rank) in (("send", 1), ("recv", 0)):
                called = "recv" if name == "send" else "send"
            args, roles = _COLLECTIVES[called](a, b) if called != name else arguments(a, b)
            if called in ("send", "recv"):
                args = (args[0], 1 - rank)
            before = {r: _state(args[i]) for r, i in roles.items() if args[i] is not None}
            getattr(torch.distributed, called)(*args)
            found = report.setdefault(called, [])
            for role, states in before.items():
                now = _state(args[roles[role]])
                counted = any(v != w for (v, _), (w, _) in zip(states, now))
                changed = any(not torch.equal(x, y) for (_, x), (_, y) in zip(states, now))
                found.append((role, counted, counted or changed))
        sending.send(report)
        torch.distributed.destroy_process_group()


def _state(value: Any) -> list[tuple[int, torch.Tensor]]:
    tensors = value if isinstance(value, list) else [value]
    return [(t._version, t.detach().clone()) for t in tensors]
