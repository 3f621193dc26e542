"""Running one form of the op table on abstract arguments.

The order is torch's: refuse a forbidden write, record the node, save inputs at their version before the write,
write, give the written tensor its history, make results, save results.
"""

from __future__ import annotations

import ast

from gradguard.engine.autograd import layout, machine, sizes
from gradguard.engine.autograd.overlap import NO_SHARING, Operands, asks, clashes
from gradguard.engine.autograd.plan import Plan, plan, short
from gradguard.engine.dispatch.binding import Bound, by_element, gradients, holds, others, rule_out, unknown
from gradguard.engine.dispatch.results import handed_on, results
from gradguard.engine.domain import spelling
from gradguard.engine.domain.events import InputRewritten, WriteFact
from gradguard.engine.domain.tensors import Cut, Node, Place, Tensor, Tri, both, either
from gradguard.engine.domain.values import ArrayV, DictV, ListV, Sym, TupleV, Value, tensors_in
from gradguard.engine.observe import graphs, holders
from gradguard.engine.state.coerce import as_tensor, is_number
from gradguard.engine.state.run import Run
from gradguard.ops.model import AliasKind, Form, Kind, Op, Saved


def apply(
    run: Run, op: Op, form: Form, bound: Bound, place: Place, *, name: str = "", kind: str = "op"
) -> Value:
    """Run the form; the result is a Tensor, a tuple of them, or a value without tensors."""
    run.operate()
    planned = plan(form)
    _coerce(run, op, planned, bound)
    name = name or op.name.rpartition(".")[2]
    values = bound.values
    inputs: list[Tensor] = []
    maybe = False
    for role in form.differentiable:
        inputs += bound.tensors(role)
        maybe = maybe or unknown(values.get(role))
    if bound.module is not None:
        # The state of a recurrent layer comes as a tensor or a tuple of them.
        for state in planned.states:
            inputs += bound.tensors(state)
    needs: Tri = False
    if inputs or maybe:
        either_needs = machine.requires(run, inputs)
        if maybe:
            either_needs = either(either_needs, both(run.modes.grad, None))
        needs = both(either_needs, holds(run, form.nodes, bound))
    if needs is False and planned.numbers and machine.requires(run, _as_numbers(planned, bound)) is not False:
        # A tensor in the place of a number: an op written in Python may compute with it.
        needs = None
    if needs is False and any(tensor.dtype in machine.NOT_DIFFERENTIABLE for tensor in inputs):
        exchanged = _elsewhere(form, planned, bound)
        if machine.requires(run, exchanged) is not False:
            # Arguments in another order than the names say (`embedding_bag(weight, input)` of old).
            needs = None
            inputs += exchanged
    apart = needs is not False and bool(inputs) and inputs[0].inference is True and _apart(form, bound)
    if apart:
        needs = None
    targets = (
        [
            (tensor, w, sure)
            for w in form.writes
            for sure in (holds(run, w.when, bound),)
            if sure is not False
            for tensor in bound.tensors(w.role)
        ]
        if form.writes
        else []
    )
    returned = planned.returned
    for target in tuple(targets):
        tensor, w, sure = target
        if (
            w.counted
            and w.role in returned
            and not _writable(
                run,
                tensor,
                inputs,
                place,
                name,
                bound.exprs.get(w.role),
                kind,
                sure,
                _maker(bound),
                _operands(op, bound, tensor, w.role),
            )
        ):
            if sure is True:
                return tensor
            # Torch would have refused: where the program runs on, it did not ask for the write.
            targets.remove(target)
            rule_out(w.when, bound)
            continue
        if w.role == "out" and tensor.inference and not run.modes.inference:
            # Whether `out` overlaps is asked after it was resized; that it is an inference tensor, always.
            _writable(run, tensor, [], place, name, bound.exprs.get("out"), "out", sure, None)
            return tensor
        if w.role == "out" and tensor.expanded and _takes(op, form, bound, tensor):
            _writable(run, tensor, [], place, name, bound.exprs.get("out"), "out", sure, None)
            return tensor
    if not targets and form.aliases:
        itself = _handed_back(run, op, form, bound)
        if itself is not None:
            return itself
        if form.list_result and needs is not False:
            inputs = [tensor for tensor in inputs if handed_on(run, op, form, bound, tensor) is not True]
            needs = machine.requires(run, inputs) if inputs or not maybe else needs
    if run.rewritten:
        _read_again(run, inputs, place)
    cuts = _cuts(run, inputs, bound)
    # A view made under no_grad still belongs to its base: nothing is cut off there.
    hidden = (
        {cut for cut in cuts if cut in run.cuts_under.values()} if cuts and run.modes.grad is False else set()
    )
    node: Node | None = None
    if needs is not False:
        frees = holds(run, form.frees, bound) if machine.receives(run, inputs) is not False else False
        node = machine.record(run, name, place, inputs, certain=needs is True, frees=frees)
        if holds(run, form.reaches, bound) is False:
            node.barren = True
        node.composite = form.source in ("observed", "corrected") and not _is_arithmetic(op)
        if not apart:
            _save(run, node, form, planned, bound)
    if op.lenient and targets:
        holders.refused(run, place)
    for tensor, w, sure in targets:
        if name.strip("_") in INPLACE_VIEWS:
            layout.view(name, tensor, values, tensor)
        how = "out" if w.role == "out" else kind if w.counted else "statistics"
        if how == "out" and needs is True:
            # Torch refuses `out=` where something is to be differentiated: what follows does not run.
            tensor.cuts = graphs.UNKNOWN_ONLY
        machine.write(
            run,
            tensor,
            place,
            name,
            kind=how,
            counted=w.counted,
            certain=sure is True,
            expr=bound.exprs.get(w.role),
            checked=False,
            sources=inputs,
            maker=_maker(bound),
            again=inputs.count(tensor) > 1 and not asks(op),
        )
        if w.counted and w.role in returned:
            machine.rebase(run, tensor, node)
    result = results(run, op, form, bound, place, node, needs, name)
    if cuts:
        written = {tensor.number for tensor, _, _ in targets}
        for tensor in tensors_in(result):
            if tensor.number not in written and machine.requires_grad(run, tensor) is False:
                tensor.cuts = tensor.cuts | cuts
            elif tensor.number not in written:
                tensor.cuts = tensor.cuts | (cuts - hidden)
        for tensor, _, _ in targets:
            if machine.requires_grad(run, tensor) is False:
                tensor.cuts = tensor.cuts | cuts
                tensor.root.cuts = tensor.root.cuts | cuts
    if node is not None and planned.saved_results:
        _save_results(run, node, form, planned, bound, result, place)
    return result


def _apart(form: Form, bound: Bound) -> bool:
    """Whether autograd is not asked at all, as every tensor given is an inference tensor.

    Torch wraps a number that is passed for a tensor, and the wrapped number is not an inference tensor. A function made
    of several ops may make such tensors inside, so what it records is unknown; yet nothing is recorded that would save
    one of the arguments.
    """
    if bound.module is not None or any(
        parameter.kind is Kind.TENSOR and is_number(bound.values.get(parameter.name))
        for parameter in form.params
    ):
        return False
    given = [tensor for value in bound.values.values() for tensor in tensors_in(value)]
    return bool(given) and all(tensor.inference is True for tensor in given)


def _elsewhere(form: Form, planned: Plan, bound: Bound) -> list[Tensor]:
    """Tensors in the place of those that get no gradient."""
    names = [name for _, name, kind in planned.coerced if kind is Kind.TENSOR and name != "out"]
    return [tensor for name in names if name not in form.differentiable for tensor in bound.tensors(name)]


def _handed_back(run: Run, op: Op, form: Form, bound: Bound) -> Tensor | None:
    """The argument, where an op with nothing to do (`to`, `contiguous`) surely returns it: nothing is recorded."""
    alias = form.aliases[0]
    if alias.kind is not AliasKind.SAME or len(form.results) != 1 or form.list_result or alias.of == "out":
        return None
    sources = bound.tensors(alias.of)
    if len(sources) != 1 or holds(run, alias.when, bound, source=sources[0], op=op) is not True:
        return None
    return sources[0]


def _takes(op: Op, form: Form, bound: Bound, out: Tensor) -> bool:
    """Whether `out` has the sizes of the result, so that torch neither resizes it nor lets its elements overlap."""
    if not sizes.pointwise(op) or op.name.endswith("_"):
        return False
    shape = sizes.result_shape(op, form, bound.values, False, None)
    return shape is not None and shape == sizes.known(out)


def _as_numbers(planned: Plan, bound: Bound) -> list[Tensor]:
    return [
        value for name in planned.numbers for value in (bound.values.get(name),) if isinstance(value, Tensor)
    ]


INPLACE_VIEWS = frozenset({"t", "transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze"})
"""In-place ops that change sizes and strides, not numbers."""


def _cuts(run: Run, inputs: list[Tensor], bound: Bound) -> frozenset[Cut]:
    """Cuts behind the result: those of the arguments, and one more where grad mode is off."""
    cuts: frozenset[Cut] = frozenset()
    for tensor in inputs:
        if tensor.cuts:
            cuts |= tensor.cuts
    for value in bound.values.values():
        if isinstance(value, (Sym, ArrayV)):
            cuts |= graphs.cuts_in(run, value)
        elif isinstance(value, (ListV, TupleV)) and (
            value.open or any(type(one) is Sym for one in value.items)
        ):
            cuts |= graphs.cuts_in(run, value) if value.items else graphs.UNKNOWN_ONLY
            cuts |= graphs.UNKNOWN_ONLY if value.open else cuts
    if cuts:
        run.work(len(cuts))
    if run.modes.grad is not False:
        return cuts
    off = run.modes.why_off
    if off is not None and any(t.requires_grad is not False for t in inputs):
        cut = run.cuts_under.setdefault(off.node, Cut(off, "no_grad", ""))
        for tensor in inputs:
            if tensor.requires_grad is not False:
                cut.leaves.update(graphs.leaves_of(run, tensor))
        cuts |= {cut}
    return cuts


def _read_again(run: Run, inputs: list[Tensor], place: Place) -> None:
    """A tensor that a sub-module rewrote is read by its caller."""
    for tensor in inputs:
        known = run.rewritten.get(tensor.number)
        if known is not None and known.depth >= run.depth and tensor.counter.value == known.version:
            del run.rewritten[tensor.number]
            run.emit(InputRewritten(known.call, False, known.text, known.write.op, place, known.write.place))


def _writable(
    run: Run,
    tensor: Tensor,
    inputs: list[Tensor],
    place: Place,
    name: str,
    expr: ast.AST | None,
    kind: str,
    sure: Tri,
    maker: Place | None,
    operands: Operands | None = None,
) -> bool:
    fact = WriteFact(
        name, place, spelling.source_text(expr) or tensor.bound_name, kind, True, run.statement, maker=maker
    )
    itself = any(one is not tensor and one.memory is tensor.memory for one in inputs)
    # An op without a derivative asks nothing of what it writes.
    needs = machine.requires(run, (tensor, *inputs)) if inputs else False
    idle = machine.onto_itself(name, tensor, inputs)
    if machine.check_write(run, tensor, needs, fact, sure is True, itself=itself, idle=idle):
        return operands is None or not clashes(run, operands, fact, certain=sure is True)
    holders.note(run, tensor, place, inputs, maker, refused=True)
    return False


def _operands(op: Op, bound: Bound, target: Tensor, role: str) -> Operands | None:
    """What an op reads besides what it writes, where torch asks whether they share memory."""
    if not asks(op):
        return None
    read = tuple(
        (value, bound.exprs.get(name))
        for name, value in bound.values.items()
        if name != role and isinstance(value, Tensor) and value.memory is target.memory
    )
    return Operands(target, read, sharing=op.name.rpartition(".")[2] not in NO_SHARING) if read else None


def _maker(bound: Bound) -> Place | None:
    return bound.module.made if bound.module is not None else None


def _coerce(run: Run, op: Op, planned: Plan, bound: Bound) -> None:
    """Unknown values that stand where a tensor must stand are tensors.

    The second operand of an arithmetic operator may just as well be a number, and so may what another form of the op
    takes as one; it stays unknown.
    """
    for index, name, kind in planned.coerced:
        value = bound.values.get(name)
        if value is None or type(value) is Tensor:
            continue
        if isinstance(value, Sym):
            if index and value.tensor is None and _is_arithmetic(op):
                continue
            if kind is Kind.TENSOR and value.kind in _TENSORS and name not in bound.open:
                bound.values[name] = as_tensor(run, value)
        elif kind is Kind.TENSORS and isinstance(value, (ListV, TupleV)):
            for item in value.items:
                if isinstance(item, Sym):
                    as_tensor(run, item)


_TENSORS = ("any", "tensor", "bool")
"""Kinds of what can turn out to be a tensor: a comparison may be one of tensors."""


def _is_arithmetic(op: Op) -> bool:
    return short(op.name) in _ARITHMETIC


_ARITHMETIC = frozenset({
    "add", "sub", "mul", "truediv", "div", "pow", "floordiv", "mod", "radd", "rsub", "rmul", "rtruediv", "rpow", "iadd", "isub",
    "imul", "itruediv", "ipow", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "multiply", "subtract", "divide", "rmod",
    "rfloordiv",
})  # fmt: skip
"""Operators whose other operand is as often a number as a tensor."""


def _save(run: Run, node: Node, form: Form, planned: Plan, bound: Bound) -> None:
    if run.modes.saved_hooks:
        for saved in planned.saved_arguments:
            for tensor in bound.tensors(saved.role):
                tensor.memory.held = True  # the hooks have it, and count no writes
        return
    for saved in planned.saved_arguments:
        if by_element(saved.when):
            _save_elements(run, node, saved, bound)
            continue
        kept = holds(run, saved.when, bound)
        if kept is False:
            continue
        sure = kept is True and not run.modes.autocast
        askers = gradients(saved.when)
        # Statistics that this very call updates are kept, but its backward uses those of the batch.
        read = not form.writes or not any(
            w.role == saved.role and not w.counted and holds(run, w.when, bound) is not False
            for w in form.writes
        )
        expr = _spelled(bound, saved.role)
        roles = askers if node.composite and len(node.edges) > 1 else frozenset()
        serves = tuple(tensor for role in roles for tensor in bound.tensors(role))
        kept_here = bound.tensors(saved.role)
        run.work(machine.WRITTEN * (len(kept_here) - 1))
        for tensor in kept_here:
            machine.save(
                run,
                node,
                saved.role,
                tensor,
                certain=sure,
                why=saved.why,
                expr=expr,
                read=read,
                serves=serves,
                likely=kept is True or not any(_doubtful(run, bound.values.get(role)) for role in askers),
            )


def _doubtful(run: Run, value: Value) -> bool:
    """Whether nothing, not even a convention, says of a value that it requires grad."""
    return unknown(value) or any(
        machine.requires_grad(run, tensor) is None
        and not (tensor.likely or tensor.root.likely or (tensor.node is not None and tensor.node.likely))
        for tensor in tensors_in(value)
    )


def _spelled(bound: Bound, role: str) -> ast.AST | None:
    """The expression that is the tensor in a role; None where it holds several."""
    name = role.partition("[")[0]
    several = isinstance(bound.values.get(name), (ListV, TupleV, DictV))
    return None if several else bound.exprs.get(name)


def _save_elements(run: Run, node: Node, saved: Saved, bound: Bound) -> None:
    """Keep those of a list that the other tensors of the list ask for."""
    value = bound.values.get(saved.role)
    items = value.items if isinstance(value, (ListV, TupleV)) else [value]
    # Each is looked at beside all others.
    run.work(len(items) ** 2)
    for index, item in enumerate(items):
        kept = holds(run, saved.when, bound, of=index)
        beside = others(bound, saved.role, index)
        for tensor in tensors_in(item) if kept is not False else ():
            machine.save(
                run,
                node,
                saved.role,
                tensor,
                certain=kept is True and not run.modes.autocast,
                why=saved.why,
                expr=_spelled(bound, saved.role),
                serves=tuple(other for one in beside for other in tensors_in(one)) if node.composite else (),
                likely=kept is True or not any(_doubtful(run, one) for one in beside),
            )


def _save_results(
    run: Run, node: Node, form: Form, planned: Plan, bound: Bound, result: Value, place: Place
) -> None:
    if run.modes.saved_hooks:
        for saved in planned.saved_results:
            for tensor in _result_role(form, saved.role, result):
                tensor.memory.held = True
        return
    for saved in planned.saved_results:
        kept = holds(run, saved.when, bound)
        if kept is False:
            continue
        for tensor in _result_role(form, saved.role, result):
            machine.save(run, node, saved.role, tensor, certain=kept is True, why=saved.why, expr=place.node)


def _result_role(form: Form, role: str, result: Value) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, TupleV):
        if form.list_result:
            return tensors_in(result)
        if role in form.results and form.results.index(role) < len(result.items):
            return tensors_in(result.items[form.results.index(role)])
    return []
