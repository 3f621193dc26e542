"""What a form of the op table gives back: tensors of their own, views, or an argument itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradguard.engine.autograd import layout, machine, sizes
from gradguard.engine.autograd.plan import plan
from gradguard.engine.dispatch import shapes
from gradguard.engine.dispatch.binding import Bound, holds
from gradguard.engine.domain.tensors import Node, Place, Tensor, Tri, either
from gradguard.engine.domain.values import Sym, TupleV, Value
from gradguard.engine.state.run import Run
from gradguard.ops.model import Alias, AliasKind, Form, Op


@dataclass(frozen=True, slots=True)
class _Ran:
    """A call whose results are made."""

    run: Run
    op: Op
    form: Form
    bound: Bound
    place: Place
    node: Node | None
    needs: Tri
    name: str


def results(
    run: Run, op: Op, form: Form, bound: Bound, place: Place, node: Node | None, needs: Tri, name: str
) -> Value:
    """The value of a call: a Tensor, a tuple of them, or None; the same role may be a view in one call and a copy in the next."""
    if not form.results:
        return None
    ran = _Ran(run, op, form, bound, place, node, needs, name)
    if sizes.pointwise(op):
        shapes.meet([tensor for source in plan(form).sources for tensor in bound.tensors(source)])
    if form.list_result:
        count = shapes.list_length(op.name, bound.values)
        if count is not None and count > shapes.MAX_PIECES:
            run.limits[PIECES] = None
            count = None
        alias = form.aliases[0] if form.aliases else None
        if alias is not None and len(bound.tensors(alias.of)) > 1:
            each = tuple(_of_each(ran, alias.of))
            run.work(MADE * len(each))
            return TupleV(each)
        made = tuple(_result(ran, "result", alias, index=index) for index in range(count or 3))
        run.work(MADE * len(made))
        return TupleV(made, open=count is None)
    if not form.aliases:
        made = tuple(_result(ran, role, None) for role in form.results)
        return made[0] if len(made) == 1 else TupleV(made, names=form.field_names)
    made_all = []
    for role in form.results:
        aliases = [alias for alias in form.aliases if alias.result == role]
        made_all.append(_result_of_aliases(ran, role, aliases))
    if len(made_all) == 1:
        return made_all[0]
    return TupleV(tuple(made_all), names=form.field_names)


def _of_each(ran: _Ran, role: str) -> Iterator[Tensor]:
    """One result for each tensor of a list (`broadcast_tensors`, `atleast_1d`): itself, or a view of it."""
    for index, source in enumerate(ran.bound.tensors(role)):
        same = handed_on(ran.run, ran.op, ran.form, ran.bound, source)
        if same is True:
            yield source
            continue
        view: Alias | None = None
        sure = True
        for alias in ran.form.aliases:
            shared = holds(ran.run, alias.when, ran.bound, source=source, op=ran.op)
            if alias.kind is not AliasKind.SAME and shared is not False and view is None:
                view, sure = alias, shared is True
        made = _result(ran, "result", view, sure=sure, index=index)
        made.view_sure = made.view_sure and same is False
        yield made


def _result_of_aliases(ran: _Ran, role: str, aliases: list[Alias]) -> Value:
    perhaps_itself = False
    for alias in aliases:
        sources = ran.bound.tensors(alias.of)
        if not sources:
            continue
        shared = holds(ran.run, alias.when, ran.bound, source=sources[0], op=ran.op)
        one = len(sources) == 1 and all(a.of == alias.of for a in aliases)
        if alias.kind is AliasKind.SAME and shared is None and one:
            # The tensor itself or a view of it: what the next alias says of the memory is true of both.
            perhaps_itself = True
            continue
        if shared is False or (shared is None and len(sources) > 1):
            # Only one tensor rearranged can be a view (`einsum("ij->ji", x)`); of several, none is.
            continue
        if alias.kind is AliasKind.SAME and shared is True:
            return sources[0]
        made = _result(ran, role, alias, sure=shared is True)
        made.view_sure = made.view_sure and not perhaps_itself
        return made
    if perhaps_itself:
        return _result(ran, role, aliases[0], sure=False)
    return _result(ran, role, None)


def handed_on(run: Run, op: Op, form: Form, bound: Bound, source: Tensor) -> Tri:
    """Whether one of a list of tensors is given back as it is (`atleast_1d`), so that nothing is recorded of it."""
    when = [
        alias.when
        for alias in form.aliases
        if alias.kind is AliasKind.SAME and source in bound.tensors(alias.of)
    ]
    return either(*[holds(run, each, bound, source=source, op=op) for each in when])


MADE = 12
"""Units of work that it takes to make a tensor."""
PIECES = "read in part: a tensor is taken apart into more pieces than are followed"

_COPIES = ("clone", "contiguous", "cpu", "to")


def _untracked(run: Run, of: Tensor, place: Place, node: Node | None, needs: Tri) -> Tensor:
    """`unsafe_split` and its like: the same memory, but to autograd a tensor of its own."""
    made = run.tensor(place, memory=of.memory)
    made.dtype, made.device, made.contiguous = of.dtype, of.device, None
    if needs is not False:
        made.node, made.requires_grad, made.leaf = node, needs, False if needs else None
    return made


def _is_number(value: Value) -> bool:
    """Whether an argument says nothing of a device: a number, a text, or nothing."""
    plain = value is None or isinstance(value, (int, float, complex, str))
    return plain or (isinstance(value, Sym) and value.kind in ("int", "index", "number", "bool"))


def _result(
    ran: _Ran, role: str, alias: Alias | None, *, sure: bool = True, index: int | None = None
) -> Tensor:
    run, op, form, bound = ran.run, ran.op, ran.form, ran.bound
    if alias is not None:
        source = bound.tensors(alias.of)
        if source:
            of = source[index] if index is not None and len(source) > 1 else source[0]
            if ran.name.startswith("unsafe_"):
                part = _untracked(run, of, ran.place, ran.node, ran.needs)
                layout.piece(op.name, part, bound.values, of, index or 0)
                return part
            if role in form.nondifferentiable and sure:
                # `view(torch.int32)` is to autograd what `detach()` is: no view, though a write raises the same count.
                shared = machine.share(run, of, ran.place, ran.name, counter=True)
                shared.shape = shared.strides = None
                shared.inference, shared.own_counter = of.inference and run.modes.inference, False
                shapes.result_dtype(op.name, shared, bound.values)
                return shared
            view = machine.make_view(run, of, ran.name, ran.place, multi=alias.multi, sure=sure)
            shapes.result_dtype(op.name, view, bound.values)
            if len(source) > 1:
                layout.one_of(op.name, view, source, of, bound.values.get("indexing") or "ij", index or 0)
            elif index is None:
                layout.view(op.name, view, bound.values, source[0])
            else:
                layout.piece(op.name, view, bound.values, source[0], index)
            if not sure and view.expanded:
                # What may be a copy (`expanded.half()`) need not overlap.
                view.expanded = view.strides = None
            return view
    made = run.tensor(ran.place)
    if role not in form.nondifferentiable and ran.needs is not False:
        made.requires_grad = ran.needs
        made.leaf = False if ran.needs else None
        made.node = ran.node
        made.likely = ran.node is not None and ran.node.likely
    tensors: list[Tensor] = []
    for source_role in plan(form).sources:
        tensors += bound.tensors(source_role)
    shapes.like(op.name, made, tensors, differentiable=role not in form.nondifferentiable)
    if not tensors and all(map(_is_number, bound.values.values())):
        made.device = "cpu"
    shapes.result_dtype(op.name, made, bound.values)
    shape = (
        sizes.result_shape(op, form, bound.values, bool(op.inplace_of), bound.module)
        if role in ("result", "result0")
        else None
    )
    layout.fresh(made, shape, tensors, op)
    if bound.values.get("memory_format") is not None:
        made.contiguous = made.strides = None
    if role in form.scattered and shape != ():
        made.contiguous, made.strides = None, None
    if len(tensors) == 1 and op.name.rpartition(".")[2] in _COPIES:
        made.copied = tensors[0].elements, len(tensors[0].memory.writes)
    made.sure = all(t.sure for t in tensors) if tensors else True
    return made
