"""Calling ops of the table, and the few operations on memory that are not ops of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradguard.engine.autograd import machine
from gradguard.engine.autograd.overlap import Operands
from gradguard.engine.dispatch import apply, binding
from gradguard.engine.dispatch.binding import Bound
from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.tensors import Place, Tensor, Tri, both, either
from gradguard.engine.domain.values import (
    MISSING,
    ArrayV,
    DictV,
    Frame,
    ListV,
    Sym,
    TupleV,
    Value,
    tensors_in,
)
from gradguard.engine.observe import reads
from gradguard.engine.state.run import Run
from gradguard.ops.model import Form, Kind


def call_op(
    run: Run, frame: Frame, path: str, call: Call, node: ast.AST, *, kind: str = "op", name: str = ""
) -> Value:
    """Run the op of that public name, or MISSING."""
    op = run.table.op(path)
    if op is None:
        return MISSING
    for value in call.args:
        if isinstance(value, (ListV, TupleV, DictV)):
            # It is gone through for each of what an op asks of its arguments.
            run.work(GONE_THROUGH * len(value.items))
    chosen = binding.choose(run, op, call)
    if chosen is None:
        return MISSING
    form, bound = chosen
    spelled = name or _plain(path.rpartition(".")[2])
    # What indexing reads follows from the kind of the index, which is known where it is indexed.
    if form.reads and not bound.open and spelled != "index" and _waits(run, form, bound):
        read = next((t for parameter in form.params for t in bound.tensors(parameter.name)), None)
        if read is not None:
            reads.host_read(run, frame, node, spelled, read, implicit=spelled not in EXPLICIT)
    for parameter in form.params if not path.startswith("torch.nn.") else ():
        # A function in Python may do anything with a number; a native one must know it.
        if parameter.kind in _NUMBERS and parameter.name in bound.values:
            for number in tensors_in(bound.values[parameter.name]):
                reads.host_read(run, frame, node, spelled, number, implicit=True)
    return apply.apply(run, op, form, bound, call.place, name=spelled, kind=kind)


GONE_THROUGH = 4

_NUMBERS = (Kind.NUMBER, Kind.FLOAT, Kind.INT, Kind.INTS)


def _waits(run: Run, form: Form, bound: Bound) -> bool:
    """Whether the form may read. Whoever gives an argument gives another than its default, where it is not known."""
    given = {
        f"{parameter.name}={parameter.default}"
        for parameter in form.params
        if parameter.name in bound.given and isinstance(bound.values.get(parameter.name), Sym)
    }
    left = tuple(each for each in form.reads if each not in given)
    return bool(left) and binding.holds(run, left, bound) is not False


def _plain(name: str) -> str:
    """`__add__` is called `add`, `add_` stays."""
    return name.strip("_") if name.startswith("__") else name


EXPLICIT = frozenset({"item", "tolist", "cpu", "numpy"})


def unknown_op(run: Run, call: Call, name: str, *, view: bool = False) -> Value:
    """An op without a row: it may need any of its arguments, so nothing is certain.

    view: the result may share memory with an argument. It is not followed, but whoever asks who else sees a
    write to that memory must not believe to know them all.
    """
    inputs = [t for value in (*call.args, *call.kwargs.values()) for t in tensors_in(value)]
    for one in inputs if view else ():
        one.memory.outside = True
    made = run.tensor(call.place)
    needs = machine.requires(run, inputs)
    made.contiguous = None
    made.device = inputs[0].device if inputs else None
    if needs is not False:
        node = machine.record(run, name, call.place, inputs, certain=False, frees=None)
        made.node = node
        made.likely = node.likely
        made.requires_grad = made.leaf = None
    made.sure = False
    return made


def index_copy_out(run: Run, owner: Tensor, indices: Sequence[Tensor], place: Place, node: ast.AST) -> Tensor:
    """`x[i]` with a tensor, list or mask: a copy whose node keeps the indices."""
    made = run.tensor(place)
    made.dtype, made.device = owner.dtype, owner.device
    needs = machine.requires(run, (owner,))
    if needs is not False:
        recorded = machine.record(run, "index", place, (owner,), certain=needs is True, frees=True)
        for index in indices:
            machine.save(run, recorded, "indices", index, why="where the gradient is put back", expr=node)
        made.node, made.requires_grad, made.leaf = recorded, needs, False if needs else None
    return made


def setitem(
    run: Run,
    frame: Frame,
    owner: Tensor,
    indices: list[Tensor],
    value: Value,
    place: Place,
    node: ast.Subscript,
    *,
    masked: bool,
    part: Tensor | None = None,
    whole: Tri = None,
    operands: Operands | None = None,
) -> None:
    """`x[i] = v`: a copy into a view of `x`, or an `index_put_` that keeps its indices.

    whole: the index takes all of `x`, which torch then writes directly. operands: see `machine.write`.
    """
    sources = tensors_in(value)
    needs = machine.requires(run, (owner, *sources))
    if isinstance(value, Sym) and value.tensor is None and value.kind == "any" and not value.data:
        needs = either(needs, both(run.modes.grad, None))
    certain = True
    if not machine.write(
        run,
        owner,
        place,
        "[...] =",
        sources=sources,
        kind="setitem",
        certain=certain,
        expr=node,
        part=part,
        operands=operands,
    ):
        return
    if needs is False:
        return
    scalar = masked and not sources
    recorded = machine.record(
        run,
        "index_put_" if indices else "copy_slices",
        place,
        (owner, *sources),
        certain=needs is True,
        # A copy into a view leaves a node on its base that the first backward empties; `x[:]` is no view but `x`,
        # and `x[:] = v` is `x.copy_(v)`, which saves nothing. Either sends zeros to what `x` was.
        frees=True if indices else None if whole is None else not whole,
    )
    if indices:
        for index in indices:
            machine.save(
                run,
                recorded,
                "mask" if scalar else "indices",
                index,
                why="where the gradient goes",
                expr=node.slice,
            )
    machine.rebase(run, owner, recorded)


def array_write(run: Run, frame: Frame, array: ArrayV, node: ast.AST, op: str) -> None:
    """A NumPy write into memory that a tensor shares: the version counter does not see it."""
    target = array.memory_of
    if target is None:
        return
    machine.write_unseen(run, run.place(frame, run.statement or node), target, op, "numpy", node)
