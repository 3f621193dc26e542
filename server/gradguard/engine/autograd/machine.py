"""The autograd machine: recording, saving, viewing and writing.

Written after libtorch: `check_write` is `check_inplace` with `handle_view_on_rebase`, `rebase` is
`rebase_history`, `record` is what generated code does around a kernel. Walking the tape is in `backward`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradguard.engine.autograd.overlap import Operands, clashes
from gradguard.engine.domain.events import (
    ArgumentWrite,
    GradientAlias,
    InferenceSaved,
    RefusedWrite,
    WriteFact,
)
from gradguard.engine.domain.spelling import source_text
from gradguard.engine.domain.tensors import (
    Edge,
    Node,
    Place,
    Saved,
    Tensor,
    Tri,
    Version,
    Write,
    both,
    either,
)
from gradguard.engine.domain.values import Sym, tensors_in
from gradguard.engine.observe.holders import note
from gradguard.engine.state.run import Run

WRITTEN = 4
"""Units of work that it takes to note a write, or something that is kept for backward."""


def requires(run: Run, tensors: Iterable[Tensor]) -> Tri:
    """Whether an op on these tensors is recorded: grad mode is on and one of them requires grad."""
    on = run.modes.grad
    found: Tri = False
    for tensor in tensors if on is not False else ():
        base = tensor.base
        if base is None or tensor.inference:
            needs = tensor.requires_grad
        else:
            needs = either(tensor.requires_grad, base.requires_grad)
        if needs:
            return on
        if needs is None:
            found = None
    return found


def requires_grad(run: Run, tensor: Tensor) -> Tri:
    """requires_grad now; a view asks its base, which may have been written since."""
    base = tensor.base
    if base is None or tensor.inference:
        # To autograd a view of an inference tensor is no view.
        return tensor.requires_grad
    # As `DifferentiableViewMeta::requires_grad` has it: also a view made under no_grad requires grad with its base.
    return either(tensor.requires_grad, base.requires_grad)


def receives(run: Run, tensors: Iterable[Tensor]) -> Tri:
    """Whether one of the tensors gets a gradient, as `should_compute_output` asks.

    A view made under no_grad requires grad with its base, but has neither history nor a gradient of its own:
    ops on it are recorded, what its gradient would need is not kept.
    """
    return both(run.modes.grad, either(*[_own(tensor) for tensor in tensors]))


def _own(tensor: Tensor) -> Tri:
    base = tensor.base
    if base is not None and not tensor.inference and tensor.view_version != tensor.counter.value:
        return base.requires_grad
    return tensor.requires_grad


def current_node(run: Run, tensor: Tensor, place: Place, *, certain: bool = True) -> Node | None:
    """The tensor's grad_fn now, as `VariableHooks::grad_fn` finds it; not certain: it may not be asked at all.

    A view whose base was written since gets a new node over the base's history. One of several views of one
    call, or a view made under no_grad, cannot be given one: torch refuses its next use.
    """
    base = tensor.base
    if base is None or tensor.inference or tensor.view_version == tensor.counter.value:
        return tensor.node
    behind = tensor.view_version
    tensor.view_version = tensor.counter.value
    if base.requires_grad is False:
        return tensor.node
    if (tensor.multi or tensor.made_no_grad) and behind >= 0:
        _refuse_stale_view(run, tensor, place, certain)
    run.trail.touched += 1
    node = Node(
        "AsStrided", place, run.tick(), certain=base.requires_grad is True, iterations=run.iterations()
    )
    node.edges.append(Edge(base, base.node, tensor.alias_sure))
    if not tensor.alias_sure and tensor.node is not None:
        # A copy has the history that it had.
        node.edges.append(Edge(tensor, tensor.node))
    tensor.node = node
    tensor.requires_grad = base.requires_grad
    tensor.leaf = False
    return node


def _refuse_stale_view(run: Run, tensor: Tensor, place: Place, sure: bool) -> None:
    write = tensor.counter.writes[-1] if tensor.counter.writes else None
    if write is None or write.place.node is place.node:
        # What `k[1] = tmp` copies is read before it writes.
        return
    certain = sure and tensor.root.requires_grad is True and tensor.alias_sure and tensor.view_sure
    certain = certain and write.certain
    # Of what is only taken for a tensor (`editor.sent[:] = kept`) it is possible, not likely.
    likely = False if tensor.sure and tensor.root.sure else None
    fact = WriteFact(write.op, write.place, write.via, write.kind, True, write.statement)
    run.emit(
        RefusedWrite(
            write.place, certain or likely, "stale-view", fact, tensor.created, tensor.view_op or "no_grad"
        )
    )


def bound(run: Run, tensor: Tensor, place: Place, name: str) -> None:
    """A statement gave the tensor a name."""
    tensor.bound_at, tensor.bound_name = place, name
    tensor.bindings.append((run.tick(), place, name))
    del tensor.bindings[:-MAX_BINDINGS]
    if run.trace is not None:
        run.trace.bound(tensor, place, name)


def bind_again(run: Run, tensor: Tensor, place: Place, name: str) -> None:
    """What holds the tensor got a name in passing, which its own name outlives."""
    tensor.bindings.append((run.tick(), place, name))
    if len(tensor.bindings) > MAX_PASSING:
        del tensor.bindings[MAX_BINDINGS:-MAX_BINDINGS]


MAX_BINDINGS = 6
MAX_PASSING = 64


def record(
    run: Run, op: str, place: Place, inputs: Iterable[Tensor], *, certain: bool = True, frees: Tri = False
) -> Node:
    """Record a node with an edge to each input that may require grad."""
    node = Node(
        op,
        place,
        run.tick(),
        frees=frees,
        certain=certain,
        iterations=run.iterations(),
        calls=tuple(run.calls),
        assumed=run.assumed(),
        depth=run.depth,
    )
    likely = certain
    for tensor in inputs:
        if len(node.edges) > FEW_EDGES:
            run.work(WRITTEN)
        if tensor.made_no_grad and tensor.base is not None and tensor.base.requires_grad is not False:
            # It asks for a gradient as long as its base does, and so as long as that is recorded.
            run.lasting.add(tensor.created.node)
        needs = _own(tensor)
        if needs is False or tensor.dtype in NOT_DIFFERENTIABLE:
            continue
        likely = likely or needs is True or tensor.likely or tensor.root.likely
        node.edges.append(Edge(tensor, current_node(run, tensor, place, certain=certain)))
    node.likely = likely
    run.nodes.append(node)
    return node


FEW_EDGES = 4
"""Inputs of an operation that count as one with it."""
NOT_DIFFERENTIABLE = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64"})


def save(
    run: Run,
    node: Node,
    role: str,
    tensor: Tensor,
    *,
    certain: bool = True,
    why: str = "",
    expr: ast.AST | None = None,
    read: bool = True,
    serves: tuple[Tensor, ...] = (),
    likely: bool = True,
    counted: bool = True,
) -> Saved | None:
    """Keep `tensor` at its present version. None where torch refuses, as it does inference tensors.

    counted: backward compares versions; False for what a program keeps itself, as an attribute of `ctx`.
    """
    if counted and tensor.inference and not run.modes.inference:
        run.emit(
            InferenceSaved(
                _passed_at(run, tensor) or node.place,
                certain and node.certain and tensor.inference is True and tensor.alias_sure,
                node.op,
                source_text(expr) or tensor.bound_name,
                tensor.created,
            )
        )
        return None
    kept = Saved(
        node,
        role,
        tensor,
        tensor.counter.value,
        len(tensor.memory.writes),
        certain,
        why,
        tensor.bound_name,
        expr,
        read,
        serves,
        likely,
        counted,
    )
    node.saved.append(kept)
    tensor.memory.saved = True
    return kept


def _passed_at(run: Run, tensor: Tensor) -> Place | None:
    """The outermost call that passed the tensor, down to the function that runs; None where none did."""
    place: Place | None = None
    for frame in reversed(run.frames):
        if frame.function is None or isinstance(frame.function.node, ast.Lambda):
            break
        arguments = frame.function.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        if not any(
            one.memory is tensor.memory for name in names for one in tensors_in(frame.variables.get(name))
        ):
            break
        place = frame.site
    return place


def make_view(
    run: Run, of: Tensor, op: str, place: Place, *, multi: bool = False, sure: bool = True
) -> Tensor:
    """A differentiable view: shares memory, counter and history with its base."""
    view = run.tensor(place, memory=of.memory, counter=of.counter)
    view.inference = of.inference
    view.base = of.root
    view.view_op = op
    view.view_version = of.counter.value
    # A view of one of several views is as restricted as that one (`propagate_creation_meta`).
    view.multi = multi or of.multi
    view.made_no_grad = run.modes.grad is False or of.made_no_grad
    view.expanded = of.expanded
    view.dtype, view.device = of.dtype, of.device
    view.alias_sure = sure and of.alias_sure
    view.view_sure = of.view_sure
    view.sure = of.sure
    view.source = of.source
    view.function_output = of.function_output
    view.contiguous = view.offset = None
    view.cuts = of.cuts
    needs = requires(run, (of,)) if not of.inference else False
    view.requires_grad = needs
    view.likely = of.likely or of.root.likely
    view.leaf = True if needs is False else (False if needs else None)
    if needs is not False:
        view.node = record(run, op, place, (of,), certain=needs is True)
    return view


def share(run: Run, of: Tensor, place: Place, source: str, *, counter: bool) -> Tensor:
    """`detach()` (shares the counter) or `.data` (has one of its own): same memory, no history."""
    made = run.tensor(place, memory=of.memory, counter=of.counter if counter else Version())
    made.inference = of.inference
    made.own_counter = of.inference is True and not run.modes.inference
    made.dtype, made.device, made.shape, made.strides = of.dtype, of.device, of.shape, of.strides
    made.contiguous, made.expanded, made.offset = of.contiguous, of.expanded, of.offset
    made.alias_sure = of.alias_sure
    made.sure = of.sure
    made.source = source
    made.region = of.elements
    made.grad_owner = of.grad_owner
    made.requires_grad = False
    return made


def write(
    run: Run,
    target: Tensor,
    place: Place,
    op: str,
    *,
    sources: Iterable[Tensor] = (),
    kind: str = "op",
    counted: bool = True,
    certain: bool = True,
    expr: ast.AST | None = None,
    checked: bool = True,
    maker: Place | None = None,
    part: Tensor | None = None,
    operands: Operands | None = None,
    again: bool = False,
) -> bool:
    """Write `target` in place. False where torch refuses; then nothing changed.

    operands: what is written and read, where torch asks whether they share memory. again: see `holders.note`.

    The caller rebases the history with the node it recorded.
    """
    text = source_text(expr) or target.bound_name
    fact = WriteFact(op, place, text, kind, counted, run.statement, maker=maker)
    itself = any(one.memory is target.memory for one in sources)
    idle = onto_itself(op, target, sources)
    allowed = not checked or check_write(
        run, target, requires(run, (target, *sources)), fact, certain, part, itself=itself, idle=idle
    )
    allowed = allowed and (operands is None or not clashes(run, operands, fact, certain=certain))
    if kind != "step" and run.step_site is None:
        note(run, target, place, sources, maker, again=again, refused=not allowed)
    if not allowed:
        return False
    # A tensor that was given the memory of another may count its writes or not.
    certain = certain and target.alias_sure and target.inference is not None and not run.assumed()
    done = Write(place, op, target, counted, certain, kind, run.statement, via=text)
    if run.step_site is not None and kind != "step":
        done.kind, done.place = "step", run.step_site
    run.trail.wrote(target.root.number)
    done.order = run.tick()
    done.iterations = run.iterations()
    done.instance = run.instance()
    done.idle = idle
    if kind in ("op", "augmented", "setitem") and run.functions:
        _note_argument(run, target, done)
    done.maker = maker
    if target.grad_owner is not None and not isinstance(expr, ast.Name):
        gradient_overwritten(run, target, place)
    if counted:
        target.counter.value += 1
        done.after = target.counter.value
        target.counter.writes.append(done)
    target.memory.writes.append(done)
    return True


def write_unseen(run: Run, place: Place, target: Tensor, op: str, kind: str, node: ast.AST) -> None:
    """A write that no version counter sees, through NumPy or `.data`; `node` is how the program spells it."""
    done = Write(place, op, target, counted=False, kind=kind, statement=run.statement, via=source_text(node))
    run.trail.act()
    done.order = run.tick()
    done.iterations = run.iterations()
    target.memory.writes.append(done)


def onto_itself(op: str, target: Tensor, sources: Iterable[Tensor]) -> bool:
    """Whether a write copies each element onto itself, as `x.data.copy_(x.detach())` does: torch does nothing then."""
    given = tuple(sources)
    if op != "copy_":
        return False
    return any(s is not target and s.elements is target.elements for s in given) or given.count(target) > 1


def gradient_overwritten(run: Run, gradient: Tensor, place: Place) -> None:
    """A gradient is written in place: whoever kept it by reference now sees other numbers."""
    named = run.named_grads.pop(gradient.number, None)
    kept = gradient.memory.kept
    if named is not None and kept is None:
        run.stale_grads[gradient.number] = (named, place)
    if kept is not None:
        run.emit(GradientAlias(kept, False, gradient.bound_name or "grad", place))


def _note_argument(run: Run, target: Tensor, done: Write) -> None:
    """A function other than an in-place one (`name_`) or a method writes what its caller passed."""
    function, frame = run.functions[-1], run.frames[-1]
    if function.owner is not None or function.name.endswith("_") or isinstance(function.node, ast.Lambda):
        return
    for passed in frame.given:
        held = passed.tensor if isinstance(passed, Sym) else passed
        if isinstance(held, Tensor) and held.root is target.root:
            run.emit(ArgumentWrite(done.place, False, done.via or held.bound_name, done.op, function.name))
            return


def check_write(
    run: Run,
    target: Tensor,
    needs: Tri,
    fact: WriteFact,
    certain: bool,
    part: Tensor | None = None,
    *,
    itself: bool = False,
    idle: bool = False,
) -> bool:
    """Whether torch lets this write pass; emits the refusal where it does not.

    part: the elements of `target` that are written, where they are not all (`x[i] = v`); `target` is its base
    where they are written through a view. idle: each element is copied onto itself.
    """
    overlap = not idle and (target.expanded if part is None else part.expanded)

    def refuse(reason: str, sure: bool, source: Place | None, detail: str = "") -> bool:
        likely = needs is True or target.likely or target.root.likely or reason in ("expanded", "inference")
        how = True if certain and sure and target.sure else (False if likely else None)
        run.emit(RefusedWrite(fact.place, how, reason, fact, source, detail))
        return False

    through_view = part is not None and part.base is target
    if target.inference and not run.modes.inference and (through_view or not target.own_counter):
        sure = not target.own_counter or (part is not None and part.view_sure)
        # A copy made outside is none.
        sure = sure and target.inference is True and target.alias_sure
        return refuse("inference", sure, target.created)
    overlaps = overlap and fact.kind not in ("step", "numpy") and fact.op not in OVERLAP_ALLOWED
    # Copying memory onto itself is no write at all, which torch sees before it looks for overlap.
    surely = overlap is True and not itself and target.alias_sure
    if overlaps and (surely or needs is False or run.modes.grad is False or run.modes.inference):
        return refuse("expanded", surely, target.created)
    if needs is False or run.modes.grad is False or run.modes.inference:
        return True
    # With the memory of another tensor it may have become one that autograd is not asked about.
    sure = needs is True and target.alias_sure and target.inference is not None
    if target.function_output:
        return refuse("function-output", sure, target.created, target.function_output)
    if target.base is not None:
        sure = sure and target.view_sure
        if target.multi:
            return refuse("multi-view", sure, target.created, target.view_op)
        if target.made_no_grad:
            return refuse("no-grad-view", sure, target.created, target.view_op)
        base = target.base
        if (
            base.requires_grad is not False
            and base.leaf is not False
            and requires_grad(run, target) is not False
        ):
            if base.requires_grad is None or base.leaf is None:
                return _maybe_leaf(base) or refuse("view-of-leaf", False, base.created, target.view_op)
            return refuse("view-of-leaf", sure, base.created, target.view_op)
    elif target.requires_grad is not False and target.leaf is not False:
        if target.requires_grad is None or target.leaf is None:
            return _maybe_leaf(target) or refuse("leaf", False, target.created)
        return refuse("leaf", sure, target.created)
    return refuse("expanded", False, target.created) if overlaps else True


OVERLAP_ALLOWED = frozenset({
    "zero_", "fill_", "index_put_", "baddbmm_", "addmv_", "zeros_", "ones_", "constant_", "fill_diagonal_", "index_fill_", "masked_fill_", "tril_", "triu_",
    "threshold_", "threshold", "Threshold", "conj_physical_", "resize_", "resize_as_", "set_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_",
})  # fmt: skip
"""Writes that torch lets pass on overlapping memory, as seen for every in-place method of torch 2.13 on an expanded tensor."""


def _maybe_leaf(target: Tensor) -> bool:
    """Whether a tensor that may be a leaf gets the benefit of the doubt.

    What a caller passes in is rarely a leaf that requires grad; only a parameter is one by nature.
    """
    return not target.parameter


def stored(run: Run, tensor: Tensor, place: Place, name: str, *, inside: bool = False) -> None:
    """A container or object now holds the tensor, or what the tensor is inside of."""
    bound(run, tensor, place, tensor.bound_name or name)
    tensor.stored_at, tensor.stored_inside = place, inside
    if tensor.grad_owner is not None:
        tensor.memory.kept = place


def rebase(run: Run, target: Tensor, node: Node | None) -> None:
    """Give a written tensor the history of its write."""
    if node is None:
        return
    needs: Tri = True if node.certain else None
    base = target.base
    if base is None:
        target.node = node
        if needs or target.requires_grad is False:
            target.requires_grad = needs
        target.leaf = False if needs else None
        return
    slices = Node(
        "CopySlices",
        node.place,
        run.tick(),
        certain=node.certain,
        # It holds the node of the write, which the first backward takes.
        frees=True if target.alias_sure else None,
        iterations=run.iterations(),
        calls=tuple(run.calls),
        assumed=run.assumed(),
    )
    if base.requires_grad is not False:
        slices.edges.append(Edge(base, base.node))
    slices.edges.append(Edge(target, node))
    run.nodes.append(slices)
    base.node = slices
    if needs or base.requires_grad is False:
        base.requires_grad = needs
    base.leaf = False if needs else None
    target.node = node
    target.view_version = -1
